import sys
import cci

with cci.sync.connect(sys.argv[1]) as connection:
    connection.send(b"hello")
    print(bytes(connection.recv()).decode())
