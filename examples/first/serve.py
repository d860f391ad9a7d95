import cci

with cci.sync.listen() as server:
    print(server.uri, flush=True)
    connection = server.accept()
    for message in connection:
        connection.send(message)
