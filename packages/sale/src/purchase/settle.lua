-- Ends an order's wait: it is paid, or it is taken back and its item returns to the stock. Once only, whoever asks.
--
-- KEYS  1 voucher hash  2 users set  3 counts hash  4 orders stream  5 states hash  6 unpaid zset
-- ARGV  1 order id  2 'paid', 'cancelled' or 'expired'  3 channel  4 publish command
-- Returns {result, state}
--   'done'     the order now has the wanted state
--   'already'  it had that state before: nothing was changed
--   'refused'  it is in another end state
--   'early'    'expired' was asked for, but its time is not over (or it has none)
--   'unknown'  there is no such order
local entry = redis.call('HGET', KEYS[5], ARGV[1])
if not entry then return {'unknown', ''} end
local state, number, user = string.match(entry, '^(%a+)|(%d+)|(.*)$')
if state == ARGV[2] then return {'already', state} end
if state ~= 'placed' then return {'refused', state} end

local time = redis.call('TIME')
local millis = time[1] .. string.format('%03d', math.floor(tonumber(time[2]) / 1000))
if ARGV[2] == 'expired' then
  local deadline = redis.call('ZSCORE', KEYS[6], ARGV[1])
  if not deadline or tonumber(deadline) > tonumber(millis) then return {'early', state} end
end

redis.call('HSET', KEYS[5], ARGV[1], ARGV[2] .. '|' .. number .. '|' .. user)
redis.call('ZREM', KEYS[6], ARGV[1])
redis.call('XADD', KEYS[4], '*', 'kind', ARGV[2], 'order', ARGV[1], 'user', user, 'number', number, 'at', millis)
if ARGV[2] ~= 'paid' then
  redis.call('HINCRBY', KEYS[1], 'stock', 1)
  local restocks = redis.call('HINCRBY', KEYS[1], 'restocks', 1)
  local held = tonumber(redis.call('HGET', KEYS[3], user) or '1') - 1
  if held <= 0 then
    redis.call('SREM', KEYS[2], user)
    redis.call('HDEL', KEYS[3], user)
  else
    redis.call('HSET', KEYS[3], user, held)
  end
  redis.call(ARGV[4], ARGV[3], 'restock:' .. restocks)
end
return {'done', ARGV[2]}
