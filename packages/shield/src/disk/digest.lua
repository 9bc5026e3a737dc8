-- The digest of what Redis answers to a read command: SHA-1 of the reply's bytes in RESP2.
--
-- KEYS  1 the key that is read
-- ARGV  the command, word by word
-- Returns the digest in hex, or false if the reply cannot be reproduced exactly: Lua's integers are exact up to 2^53 only.
local pieces = {}
local isExact = true
local function add(value)
  local kind = type(value)
  if kind == 'string' then
    pieces[#pieces + 1] = '$' .. #value .. '\r\n' .. value .. '\r\n'
  elseif kind == 'number' then
    if value >= 9007199254740992 or value <= -9007199254740992 then isExact = false end
    pieces[#pieces + 1] = string.format(':%.0f\r\n', value)
  elseif kind == 'boolean' then
    pieces[#pieces + 1] = '$-1\r\n'
  elseif value.ok then
    pieces[#pieces + 1] = '+' .. value.ok .. '\r\n'
  else
    pieces[#pieces + 1] = '*' .. #value .. '\r\n'
    for index = 1, #value do add(value[index]) end
  end
end
add(redis.call(unpack(ARGV)))
return isExact and redis.sha1hex(table.concat(pieces))
