-- Moves an order to its next state: paid, refunded, cancelled or expired. Only once, whoever asks.
--
-- KEYS  1 voucher hash  2 users set  3 holders hash  4 orders stream  5 states hash  6 unpaid zset
-- ARGV  1 order id  2 'paid', 'cancelled', 'expired' (from placed) or 'refunded' (from paid)  3 channel  4 publish command
--       5 '1': an item that comes back is on sale again; '0': it is gone
-- Returns {result, state}
--   'done'     the order now has the wanted state
--   'already'  it had that state before: nothing was changed
--   'refused'  its state does not allow the wanted one
--   'early'    'expired' was asked for, but its deadline has not passed (or it has none)
--   'unknown'  there is no such order
local entry = redis.call('HGET', KEYS[5], ARGV[1])
if not entry then return {'unknown', ''} end
local state, number, token, user = string.match(entry, '^(%a+)|(%d+)(:?[%w-]*)|(.*)$')
if state == ARGV[2] then return {'already', state} end
local from = ARGV[2] == 'refunded' and 'paid' or 'placed'
if state ~= from then return {'refused', state} end

-- A field written by hand that is not a number stays as it is.
local function countOf(field)
  local value = redis.call('HGET', KEYS[1], field)
  return value and #value <= 15 and string.find(value, '^%-?%d+$') and tonumber(value) or nil
end

local function add(field, change)
  local count = countOf(field)
  if count then redis.call('HSET', KEYS[1], field, string.format('%.0f', count + change)) end
end

local time = redis.call('TIME')
local millis = time[1] .. string.format('%03d', math.floor(tonumber(time[2]) / 1000))
if ARGV[2] == 'expired' then
  local deadline = redis.call('ZSCORE', KEYS[6], ARGV[1])
  if not deadline or tonumber(deadline) > tonumber(millis) then return {'early', state} end
end

local holder = redis.call('HGET', KEYS[3], user) or (number .. ' -')
local last, previous, orders = string.match(holder, '^(%d+) (%S+)(.*)$')
local event = {'kind', ARGV[2], 'order', ARGV[1], 'user', user, 'number', number, 'at', millis, 'prev', previous}
if ARGV[2] == 'paid' then
  -- If the store has refused the order itself, as after lost writes, a payment must not make it accepted.
  local perUser = redis.call('HGET', KEYS[1], 'perUser') or '1'
  event[#event + 1] = 'limit'
  event[#event + 1] = string.find(perUser, '^[1-9]%d*$') and #perUser <= 15 and perUser or '1'
end
-- A voucher whose hash is gone has no stock to return the item to; writing one field would look like a voucher.
local isReturned = ARGV[2] ~= 'paid' and ARGV[5] == '1' and countOf('stock')
local restocks = string.format('%.0f', (countOf('restocks') or 0) + 1)

-- Redis does not undo what a script did before an error, so whatever may fail comes before the first change: the keys that
-- were not read yet may be of another type, and the user may lack the right to publish.
redis.call('SCARD', KEYS[2])
redis.call('XLEN', KEYS[4])
redis.call('ZCARD', KEYS[6])
-- Writes what is there: refused if Redis may not write now (no memory, a replica), before anything is announced.
redis.call('HSET', KEYS[5], ARGV[1], entry)
-- Either message wakes the workers.
redis.call(ARGV[4], ARGV[3], isReturned and 'restock:' .. restocks or 'placed')

redis.call('HSET', KEYS[5], ARGV[1], ARGV[2] .. '|' .. number .. token .. '|' .. user)
redis.call('ZREM', KEYS[6], ARGV[1])
local written = redis.call('XADD', KEYS[4], '*', unpack(event))
if ARGV[2] ~= 'paid' then
  local kept = ''
  for id in string.gmatch(orders, '%S+') do
    if id ~= ARGV[1] then kept = kept .. ' ' .. id end
  end
  orders = kept
  if orders == '' then redis.call('SREM', KEYS[2], user) end
  add('sold', -1)
  if isReturned then
    add('stock', 1)
    redis.call('HSET', KEYS[1], 'restocks', restocks)
  elseif ARGV[5] ~= '1' then
    add('total', -1)
  end
end
redis.call('HSET', KEYS[3], user, last .. ' ' .. written .. orders)
return {'done', ARGV[2]}
