-- Shows frames of CCI as docs/wire.md defines them. Use:
--
--     wireshark -X lua_script:cci.lua        or copy it to the folder of personal Lua plugins
--
-- Frames are found in any UDP datagram by magic, length and kind; a port can be set in the
-- preferences for frames that do not look like it. A capture with segmentation or receive offload
-- shows several frames as one datagram: each gets its own tree. Reserved fields that are not zero
-- are not marked. The body of a sealed frame stays encrypted: no key is asked for.

local cci = Proto("cci", "CCI")

cci.prefs.port = Pref.uint("UDP port", 0, "Port that carries CCI whatever its datagrams look like; 0 for none")
cci.prefs.verify = Pref.bool("Verify the check", true, "Compute the CRC32C of every frame")

local HEADER, DATA, CONNECT, ACCEPT, REJECT, REDIRECT, CLOSE, MAX_SACK = 32, 56, 88, 72, 44, 52, 44, 64
-- A tag; the ephemeral key in a share; a share without a payload, and the longest beside its payload.
local TAG, KEY, SHARE, MAX_SHARE = 16, 32, 48, 256
local MAX_PAYLOAD = 1056

local KINDS = {
    "CONNECT", "RETRY", "ACCEPT", "REJECT", "REDIRECT", "DATA", "CLOSE", "RESET", "MULTICAST", "CONFIRM",
}
-- Bits of the kind of a sealed frame.
local SEALED, PHASE = 0x80, 0x40
-- Bytes of the kinds that are sealed, with their tag: exactly, or at least.
local SEALED_SIZES = { DATA = HEADER + 24 + TAG, CLOSE = HEADER + 12 + TAG, RESET = 52, CONFIRM = HEADER + 16 + TAG }
local IS_EXACT = { RESET = true, CONFIRM = true }
local RECORDS = {
    "MESSAGE", "PART", "WRITE", "READ", "READ_BYTES", "RESULT", "PROBE", "PROBE_REPLY", "SLICE", "ATOMIC", "VALUE",
    "LARGE", "LANDING",
}
local ATTRIBUTES = { [0] = "RO", "RU", "UU" }
local REASONS = { [0] = "by the server's program", "version", "no room", "attribute", "security" }
local CLOSINGS = { [0] = "asked for by the program", "the peer broke the protocol" }
local STATUSES = { [0] = "well", "handle, range or right is wrong", "the copy failed", "the message is too long" }
local CHECKS = { [0] = "wrong", "right", "not verified" }
local YES = { "yes", "no" }

-- Fields, by the names that follow "cci.".
local f = {}
local function field(name, kind, title, ...)
    f[name] = ProtoField[kind]("cci." .. name, title, ...)
end
field("version", "uint8", "version", base.DEC, nil, 0x0F)
field("sealed", "bool", "sealed", 8, YES, SEALED)
field("phase", "bool", "phase of the key, lowest bit", 8, nil, PHASE)
field("kind", "uint8", "kind", base.DEC, KINDS, 0x3F)
field("length", "uint16", "length")
field("check", "uint32", "check", base.HEX)
field("check.status", "uint8", "check is", base.DEC, CHECKS)
field("to", "uint64", "to", base.HEX)
field("from", "uint64", "from", base.HEX)
field("number", "uint32", "number")
field("number.upper", "uint32", "number, upper 32 bits")
field("number.whole", "uint64", "whole number")
field("time", "uint32", "time")
field("features", "uint32", "features", base.HEX)
field("features.unchecked", "bool", "UNCHECKED", 32, YES, 1)
field("features.sealed", "bool", "SEALED", 32, YES, 0x00010000)
field("features.encryption", "uint32", "reserved for encryption", base.HEX, nil, 0xFFFE0000)
field("first_seq", "uint32", "first seq")
field("attribute", "uint8", "attribute", base.DEC, ATTRIBUTES)
field("mtu", "uint16", "mtu")
field("max_send_size", "uint32", "max send size")
field("recv_buffer", "uint32", "receive buffer")
field("credit", "uint32", "credit")
field("host", "uint64", "host", base.HEX)
field("token", "uint64", "token", base.HEX)
field("cookie", "uint64", "cookie", base.HEX)
field("cookie_time", "uint32", "cookie time")
field("payload_length", "uint16", "payload length")
field("payload", "bytes", "payload")
field("padding", "bytes", "padding")
field("share_length", "uint16", "share length")
field("share", "bytes", "share")
field("share.key", "bytes", "ephemeral key")
field("share.payload", "bytes", "payload, encrypted")
field("share.tag", "bytes", "tag")
field("body", "bytes", "body, encrypted")
field("tag", "bytes", "tag")
field("reset_token", "bytes", "reset token")
field("reject_reason", "uint8", "reason", base.DEC, REASONS)
field("uri_length", "uint16", "uri length")
field("uri", "string", "uri")
field("close_reason", "uint8", "reason", base.DEC, CLOSINGS)
field("delivered", "uint16", "messages delivered of the next frame")
field("is_answer", "bool", "is answer", base.NONE)
field("answered_number", "uint32", "answered number")
field("message", "bytes", "message")
field("seq", "uint32", "seq")
field("flags", "uint8", "flags", base.HEX)
field("flags.sequenced", "bool", "SEQUENCED", 8, YES, 0x01)
field("flags.ask", "bool", "ASK", 8, YES, 0x02)
field("flags.rnr", "bool", "RNR", 8, YES, 0x04)
field("flags.unchecked", "bool", "UNCHECKED", 8, YES, 0x08)
field("flags.prompt", "bool", "PROMPT", 8, YES, 0x10)
field("sack_words", "uint8", "sack words")
field("ack", "uint32", "ack")
field("echo_number", "uint32", "echo number")
field("echo_time", "uint32", "echo time")
field("delay", "uint16", "delay")
field("congested", "uint16", "congested")
field("sack", "uint64", "sack", base.HEX)
field("record", "uint8", "record kind", base.DEC, RECORDS)
field("record.flags", "uint8", "record flags", base.HEX)
field("record.flags.after", "bool", "AFTER", 8, YES, 0x01)
field("record.flags.compare", "bool", "COMPARE", 8, YES, 0x01)
field("record.length", "uint16", "length of body")
field("record.message", "uint32", "message")
field("record.total", "uint32", "total")
field("record.op", "uint32", "op")
field("record.handle", "uint64", "handle", base.HEX)
field("record.offset", "uint64", "offset")
field("record.len", "uint64", "len")
field("record.at", "uint64", "at")
field("record.status", "uint8", "status", base.DEC, STATUSES)
field("record.operand", "uint64", "operand")
field("record.expected", "uint64", "expected")
field("record.value", "uint64", "value")
field("record.size", "uint16", "size")
field("record.bytes", "bytes", "bytes")
cci.fields = f

local wrong_check = ProtoExpert.new("cci.check.wrong", "The check is wrong", expert.group.CHECKSUM, expert.severity.ERROR)
local malformed = ProtoExpert.new("cci.malformed", "Malformed frame", expert.group.MALFORMED, expert.severity.ERROR)
local cut = ProtoExpert.new("cci.cut", "Not captured whole", expert.group.UNDECODED, expert.severity.WARN)
local refused = ProtoExpert.new("cci.rnr", "No slot was free for a message", expert.group.SEQUENCE, expert.severity.NOTE)
cci.experts = { wrong_check, malformed, cut, refused }

-- CRC32C

local crc_table = {}
for i = 0, 255 do
    local entry = i
    for _ = 1, 8 do
        local low = bit.band(entry, 1)
        entry = bit.rshift(entry, 1)
        if low == 1 then entry = bit.bxor(entry, 0x82F63B78) end
    end
    crc_table[i] = entry
end

local function crc_advance(register, bytes)
    for i = 1, #bytes do
        local index = bit.band(bit.bxor(register, bytes:byte(i)), 0xFF)
        register = bit.bxor(crc_table[index], bit.rshift(register, 8))
    end
    return register
end

-- Of the first `covered` bytes of a frame, its check counted as zero; the numbers of `bit` are
-- signed.
local function crc32c(frame, covered)
    local register = crc_advance(-1, frame:raw(0, 4) .. "\0\0\0\0")
    if covered > 8 then register = crc_advance(register, frame:raw(8, covered - 8)) end
    return bit.bnot(register) % 0x100000000
end

-- Records: each is a list of { field, size }; a size of nil is the rest of the body, a field of nil
-- is reserved.

local OPERATION = {
    { "record.op", 4 }, { nil, 4 }, { "record.handle", 8 }, { "record.handle", 8 }, { "record.offset", 8 }, { "record.len", 8 },
}
local LAYOUTS = {
    { { "record.bytes" } },
    { { "record.message", 4 }, { "record.total", 4 }, { "record.at", 4 }, { "record.bytes" } },
    { OPERATION[1], OPERATION[2], OPERATION[3], OPERATION[4], OPERATION[5], OPERATION[6], { "record.at", 8 }, { "record.bytes" } },
    OPERATION,
    { { "record.op", 4 }, { nil, 4 }, { "record.at", 8 }, { "record.bytes" } },
    { { "record.op", 4 }, { "record.status", 1 }, { nil, 3 } },
    { { "record.size", 2 }, { nil, 2 }, { "padding" } },
    { { "record.size", 2 }, { nil, 2 } },
    { { "record.total", 2 }, { "record.at", 2 }, { "record.bytes" } },
    {
        OPERATION[1], OPERATION[2], OPERATION[3], OPERATION[4], OPERATION[5], OPERATION[6], { "record.operand", 8 },
        { "record.expected", 8 },
    },
    { { "record.op", 4 }, { nil, 4 }, { "record.value", 8 } },
    { { "record.op", 4 }, { nil, 4 }, { "record.len", 8 } },
    { { "record.op", 4 }, { nil, 4 }, OPERATION[3], OPERATION[4] },
}
local WRITE, READ_BYTES, RESULT, PROBE, SLICE, ATOMIC, VALUE, LARGE = 3, 5, 6, 7, 9, 10, 11, 12
local IS_LAST = { [WRITE] = true, [READ_BYTES] = true, [PROBE] = true, [SLICE] = true, [ATOMIC] = true, [LARGE] = true }
-- Kinds whose lowest flag has a meaning, and its name.
local FLAGS = { [1] = "record.flags.after", [ATOMIC] = "record.flags.compare" }

-- Bytes of the fields before the rest, and whether there may be a rest.
local function fixed_size(layout)
    local size = 0
    for _, part in ipairs(layout) do
        if not part[2] then return size, true end
        size = size + part[2]
    end
    return size, false
end

-- Whether `count` bytes from `at` end within `whole`; all but the count are UInt64.
local function fits(at, count, whole)
    return at <= whole and whole - at >= UInt64(count)
end

local function range_is_sound(body)
    return fits(body(24, 8):uint64(), 0, UInt64.max()) and UInt64.max() - body(24, 8):uint64() >= body(32, 8):uint64()
end

-- What is wrong with the content of a record, if anything; its size is right.
local CONTENT = {
    [2] = function(body)
        return body(8, 4):uint() + body:len() - 12 <= body(4, 4):uint() and body:len() > 12
    end,
    [3] = function(body)
        return body:len() > 48 and range_is_sound(body) and fits(body(40, 8):uint64(), body:len() - 48, body(32, 8):uint64())
    end,
    [4] = range_is_sound,
    [5] = function(body)
        return body:len() > 16 and fits(body(8, 8):uint64(), body:len() - 16, UInt64.max())
    end,
    [6] = function(body)
        return body(4, 1):uint() <= 3
    end,
    [10] = function(body)
        local len = body(32, 8):uint64()
        return len == UInt64(4) or len == UInt64(8)
    end,
    [9] = function(body)
        return body(2, 2):uint() + body:len() - 4 <= body(0, 2):uint() and body:len() > 4
    end,
}

-- The records of a frame from an offset on: { kind, offset, length of body }, and what is wrong
-- with them, if anything.
local function records_of(frame, at)
    local found = {}
    while at < frame:len() do
        if frame:len() - at < 4 then return found, "a record without a head" end
        local kind, len = frame(at, 1):uint(), frame(at + 2, 2):uint()
        local layout = LAYOUTS[kind]
        if not layout then return found, "a record of unknown kind" end
        if len > frame:len() - at - 4 then return found, "a record beyond its frame" end
        local size, has_rest = fixed_size(layout)
        if len < size or (len > size and not has_rest) then return found, "a record of a wrong length" end
        if IS_LAST[kind] and at + 4 + len < frame:len() then return found, "a record after one that has to be the last" end
        if frame(at + 1, 1):uint() > (FLAGS[kind] and 1 or 0) then return found, "a record with an unknown flag" end
        local content = CONTENT[kind]
        if content and not content(frame(at + 4, len):tvb()) then return found, "a record that contradicts itself" end
        if kind == PROBE and frame(at + 4, 2):uint() ~= frame:len() then return found, "a probe of another size" end
        if (kind == ATOMIC or kind == LARGE) and #found > 0 then return found, "a record that has to be alone" end
        found[#found + 1] = { kind, at, len }
        at = at + 4 + len
    end
    return found
end

local function add_record(tree, frame, record)
    local kind, at, len = record[1], record[2], record[3]
    local branch = tree:add(cci, frame(at, 4 + len), RECORDS[kind] .. ", " .. len .. " bytes")
    branch:add(f["record"], frame(at, 1))
    local flags = branch:add(f["record.flags"], frame(at + 1, 1))
    if FLAGS[kind] then flags:add(f[FLAGS[kind]], frame(at + 1, 1)) end
    branch:add(f["record.length"], frame(at + 2, 2))
    at = at + 4
    local stop = at + len
    for _, part in ipairs(LAYOUTS[kind]) do
        local size = part[2] or stop - at
        if part[1] and size > 0 then branch:add(f[part[1]], frame(at, size)) end
        at = at + size
    end
end

-- Bodies of the kinds. Each returns what is wrong, if anything.

local function add_fields(tree, frame, at, parts)
    for _, part in ipairs(parts) do
        if part[1] then tree:add(f[part[1]], frame(at, part[2])) end
        at = at + part[2]
    end
end

local function add_offer(tree, frame)
    local features = tree:add(f["features"], frame(32, 4))
    features:add(f["features.unchecked"], frame(32, 4))
    features:add(f["features.sealed"], frame(32, 4))
    features:add(f["features.encryption"], frame(32, 4))
    add_fields(tree, frame, 36, {
        { "first_seq", 4 }, { "attribute", 1 }, { nil, 1 }, { "mtu", 2 }, { "max_send_size", 4 }, { "recv_buffer", 4 },
        { "credit", 4 }, { "host", 8 },
    })
    if not ATTRIBUTES[frame(40, 1):uint()] then return "an unknown attribute" end
end

local function offers_sealed(frame)
    return bit.band(frame(32, 4):uint(), 0x00010000) ~= 0
end

-- A share of a handshake: a key, what is encrypted with it, and a tag.
local function add_share(tree, frame, at, len)
    local share = tree:add(f["share"], frame(at, len))
    share:add(f["share.key"], frame(at, KEY))
    if len > SHARE then share:add(f["share.payload"], frame(at + KEY, len - SHARE)) end
    share:add(f["share.tag"], frame(at + len - TAG, TAG))
end

-- The tag that an answer within a sealed handshake ends with. Any other length is wrong.
local function add_tag(tree, frame, at, wrong)
    if frame:len() == at then return end
    if frame:len() ~= at + TAG then return wrong end
    tree:add(f["tag"], frame(at, TAG))
end

-- A body of a fixed size.
local function fixed(size, add)
    return function(tree, frame)
        if frame:len() ~= size then return "not of its kind's length" end
        return add(tree, frame)
    end
end

local BODIES = {}

-- The share of a CONNECT that offers SEALED, from an offset on, and where it ends; or what is wrong.
local function add_client_share(tree, frame, at, inside)
    if frame:len() < 580 then return nil, "shorter than a sealed CONNECT may be" end
    local len = inside > 0 and inside or SHARE
    local is_sound = inside == 0 or (inside >= SHARE and inside <= MAX_SHARE + MAX_PAYLOAD and at == CONNECT)
    if not is_sound or len > frame:len() - at then return nil, "a share of a wrong length" end
    add_share(tree, frame, at, len)
    return at + len
end

function BODIES.CONNECT(tree, frame)
    if frame:len() < 564 then return "shorter than a CONNECT may be" end
    local wrong = add_offer(tree, frame)
    add_fields(tree, frame, 64, {
        { "token", 8 }, { "cookie", 8 }, { "cookie_time", 4 }, { "payload_length", 2 }, { "share_length", 2 },
    })
    local len, inside = frame(84, 2):uint(), frame(86, 2):uint()
    if len > MAX_PAYLOAD or CONNECT + len > frame:len() then return "a payload that is too long" end
    if len > 0 then tree:add(f["payload"], frame(CONNECT, len)) end
    local at = CONNECT + len
    if offers_sealed(frame) then
        local stop, broken = add_client_share(tree, frame, at, inside)
        if not stop then return broken end
        at = stop
    elseif inside > 0 then
        return "a share without the feature SEALED"
    end
    if at < frame:len() then tree:add(f["padding"], frame(at)) end
    return wrong
end

BODIES.RETRY = fixed(44, function(tree, frame)
    add_fields(tree, frame, 32, { { "cookie", 8 }, { "cookie_time", 4 } })
end)

function BODIES.ACCEPT(tree, frame)
    local share = frame:len() - ACCEPT
    if share < 0 or (share > 0 and not offers_sealed(frame)) then return "not of its kind's length" end
    local wrong = add_offer(tree, frame)
    add_fields(tree, frame, 64, { { "cookie", 8 } })
    if not offers_sealed(frame) then return wrong end
    if share < SHARE or share > MAX_SHARE then return "a share of a wrong length" end
    add_share(tree, frame, ACCEPT, share)
    return wrong
end

function BODIES.REJECT(tree, frame)
    if frame:len() < REJECT then return "not of its kind's length" end
    add_fields(tree, frame, 32, { { "reject_reason", 1 }, { nil, 3 }, { "cookie", 8 } })
    local wrong = add_tag(tree, frame, REJECT, "not of its kind's length")
    if not REASONS[frame(32, 1):uint()] then return "an unknown reason" end
    return wrong
end

function BODIES.REDIRECT(tree, frame)
    if frame:len() <= REDIRECT then return "not of its kind's length" end
    add_fields(tree, frame, 32, { { "uri_length", 2 }, { nil, 2 }, { "cookie", 8 }, { "token", 8 } })
    local len = frame(32, 2):uint()
    if len < 1 or len > 512 or REDIRECT + len > frame:len() then return "a URI of another length" end
    tree:add(f["uri"], frame(REDIRECT, len))
    return add_tag(tree, frame, REDIRECT + len, "a URI of another length")
end

function BODIES.CLOSE(tree, frame)
    if frame:len() < CLOSE then return "shorter than its kind" end
    add_fields(tree, frame, 32, {
        { "close_reason", 1 }, { "is_answer", 1 }, { "sack_words", 1 }, { nil, 1 }, { "ack", 4 }, { "delivered", 2 },
    })
    if frame(33, 1):uint() > 1 then return "neither an answer nor none" end
    local words = frame(34, 1):uint()
    if words > MAX_SACK or CLOSE + 8 * words > frame:len() then return "a sack that is too long" end
    for word = 0, words - 1 do tree:add(f["sack"], frame(CLOSE + 8 * word, 8)) end
    local records, wrong = records_of(frame, CLOSE + 8 * words)
    for _, record in ipairs(records) do
        add_record(tree, frame, record)
        if record[1] ~= RESULT and record[1] ~= VALUE then return "a record that is neither RESULT nor VALUE" end
    end
    return wrong
end

BODIES.RESET = fixed(36, function(tree, frame)
    add_fields(tree, frame, 32, { { "answered_number", 4 } })
end)

function BODIES.MULTICAST(tree, frame)
    if frame:len() > HEADER then tree:add(f["message"], frame(HEADER)) end
end

BODIES.CONFIRM = fixed(HEADER, function() end)

function BODIES.DATA(tree, frame)
    if frame:len() < DATA then return "shorter than its kind" end
    tree:add(f["seq"], frame(32, 4))
    local flags = tree:add(f["flags"], frame(36, 1))
    for _, name in ipairs({ "sequenced", "ask", "rnr", "unchecked", "prompt" }) do
        flags:add(f["flags." .. name], frame(36, 1))
    end
    add_fields(tree, frame, 37, {
        { "sack_words", 1 }, { "credit", 2 }, { "ack", 4 }, { "echo_number", 4 }, { "echo_time", 4 }, { "delay", 2 },
        { "congested", 2 },
    })
    if bit.band(frame(36, 1):uint(), 0x04) ~= 0 then tree:add_proto_expert_info(refused) end
    local words = frame(37, 1):uint()
    if words > MAX_SACK or DATA + 8 * words > frame:len() then return "a sack that is too long" end
    for word = 0, words - 1 do tree:add(f["sack"], frame(DATA + 8 * word, 8)) end
    local records, wrong = records_of(frame, DATA + 8 * words)
    for _, record in ipairs(records) do add_record(tree, frame, record) end
    if frame(36, 1):uint() >= 0x20 then return "an unknown flag" end
    return wrong
end

-- Bytes of a frame that its check covers.
local function covered(frame)
    local len = frame:len()
    if KINDS[frame(1, 1):uint()] ~= "DATA" or len < DATA or bit.band(frame(36, 1):uint(), 0x08) == 0 then return len end
    local words = frame(37, 1):uint()
    if words > MAX_SACK or DATA + 8 * words > len then return len end
    local records, wrong = records_of(frame, DATA + 8 * words)
    local last = records[#records]
    if wrong or not last or not (last[1] == WRITE or last[1] == READ_BYTES) then return len end
    return last[2] + 4 + fixed_size(LAYOUTS[last[1]])
end

local function add_check(tree, frame)
    local item = tree:add(f["check"], frame(4, 4))
    local status = 2
    if cci.prefs.verify then
        local right = crc32c(frame, covered(frame))
        status = frame(4, 4):uint() == right and 1 or 0
        if status == 0 then
            item:add_proto_expert_info(wrong_check, string.format("The check is wrong, 0x%08x would be right", right))
        end
    end
    item:add(f["check.status"], status):set_generated()
end

-- The name of the kind that these bits give, and whether the frame is sealed.
local function kind_of(bits)
    if bits < SEALED then return KINDS[bits], false end
    local name = KINDS[bits % PHASE]
    return SEALED_SIZES[name] and name, true
end

-- What follows the header of a sealed frame. A RESET is not encrypted: it ends with a token.
local function add_sealed_body(tree, frame, kind)
    if not kind then return "an unknown kind" end
    local len, size = frame:len(), SEALED_SIZES[kind]
    if len < size or (len > size and IS_EXACT[kind]) then return "not of its kind's length" end
    if kind == "RESET" then
        add_fields(tree, frame, HEADER, { { "answered_number", 4 }, { "reset_token", TAG } })
        return
    end
    add_fields(tree, frame, HEADER, { { "body", len - HEADER - TAG }, { "tag", TAG } })
    if frame(4, 4):uint() >= 0x80000000 then return "a number that no sender reaches" end
end

local function add_frame(tree, frame)
    local kind, is_sealed = kind_of(frame(1, 1):uint())
    local title = (is_sealed and "sealed " or "") .. (kind or "unknown kind")
    local branch = tree:add(cci, frame(), "CCI " .. title .. ", " .. frame:len() .. " bytes")
    branch:add(f["version"], frame(0, 1))
    branch:add(f["sealed"], frame(1, 1))
    if is_sealed then branch:add(f["phase"], frame(1, 1)) end
    branch:add(f["kind"], frame(1, 1))
    branch:add(f["length"], frame(2, 2))
    if is_sealed then branch:add(f["number.upper"], frame(4, 4)) else add_check(branch, frame) end
    add_fields(branch, frame, 8, { { "to", 8 }, { "from", 8 }, { "number", 4 }, { "time", 4 } })
    -- The upper half means nothing in a RESET.
    if is_sealed and kind ~= "RESET" then
        local whole = UInt64.new(frame(24, 4):uint(), frame(4, 4):uint())
        branch:add(f["number.whole"], whole):set_generated()
    end
    local wrong
    if is_sealed then
        wrong = add_sealed_body(branch, frame, kind)
    elseif kind then
        wrong = BODIES[kind](branch, frame)
    else
        wrong = "an unknown kind"
    end
    if wrong then branch:add_proto_expert_info(malformed, "Malformed frame: " .. wrong) end
    return title
end

-- How long the frame at this offset says that it is, if it looks like one.
local function length_at(buffer, at)
    if buffer:len() - at < HEADER or buffer(at, 1):uint() ~= 0xC2 then return nil end
    local len = buffer(at + 2, 2):uint()
    if len < HEADER or len > buffer:reported_length_remaining(at) then return nil end
    return len
end

function cci.dissector(buffer, packet, tree)
    if buffer:len() == 0 then return 0 end
    packet.cols.protocol = "CCI"
    local kinds = {}
    local at = 0
    while at < buffer:len() do
        local len = length_at(buffer, at)
        if not len then
            local rest = tree:add(cci, buffer(at), "CCI, not a frame")
            rest:add_proto_expert_info(malformed, "Malformed frame: no header of this version, or not as long as it says")
            break
        end
        if len > buffer:len() - at then
            tree:add(cci, buffer(at), "CCI frame"):add_proto_expert_info(cut)
            break
        end
        kinds[#kinds + 1] = add_frame(tree, buffer(at, len):tvb())
        at = at + len
    end
    packet.cols.info = table.concat(kinds, ", ")
    return buffer:len()
end

-- Whether all of a datagram looks like frames of known kinds.
local function heuristic(buffer, packet, tree)
    local at = 0
    while at < buffer:len() do
        local len = length_at(buffer, at)
        if not len or not kind_of(buffer(at + 1, 1):uint()) then return false end
        at = at + len
    end
    if at == 0 then return false end
    cci.dissector(buffer, packet, tree)
    return true
end
cci:register_heuristic("udp", heuristic)

local ports = DissectorTable.get("udp.port")
local port = 0
function cci.prefs_changed()
    if port ~= 0 then ports:remove(port, cci) end
    port = cci.prefs.port
    if port ~= 0 then ports:add(port, cci) end
end
