-- Sells one item of a voucher to one user, all or nothing.
--
-- KEYS  1 voucher hash  2 users set  3 holders hash  4 orders stream  5 states hash  6 unpaid zset
-- ARGV  1 user id  2 order id  3 milliseconds until an unpaid order expires (0 = never)
--       4 channel  5 publish command (PUBLISH or SPUBLISH)
--       6 token of this call: a call that a client library sends twice is one purchase.
--         Empty: the caller chose the order id, and the same user may repeat it
-- Returns {code, number, text}
--   'sold'     the number of this user's order (1, 2, …; never used again), ''
--   'unknown'  0, '': there is no such voucher
--   'invalid'  0, the invalid field and its value
--   'adopt'    0, '': made by hand; run adopt.lua, then try again
--   'taken'    0, '': the order id belongs to another order
--   'early'    seconds until it begins, ''
--   'late'     seconds since it ended, ''
--   'soldout'  how often stock was added so far, how many orders are live: a process remembers "sold out" with these
--   'bought'   how many orders the user already holds, and their ids, separated by spaces
-- The time is Redis' own: a client's clock cannot open a sale.
local fields = {'begin', 'end', 'stock', 'perUser'}
local voucher = redis.call('HMGET', KEYS[1], 'begin', 'end', 'stock', 'perUser', 'restocks', 'sold')
if not (voucher[1] or voucher[2] or voucher[3]) then return {'unknown', 0, ''} end
voucher[4] = voucher[4] or '1'
for index = 1, 4 do
  local text = voucher[index]
  if not text or #text > 15 or not string.find(text, '^%-?%d+$') then
    return {'invalid', 0, fields[index] .. ' ' .. (text or '')}
  end
end
local begins, ends, stock, perUser = tonumber(voucher[1]), tonumber(voucher[2]), tonumber(voucher[3]), tonumber(voucher[4])
-- In milliseconds by mistake: as seconds this is the year 5138, and the sale would never begin.
if begins > 1e11 then return {'invalid', 0, 'begin ' .. voucher[1]} end
if perUser < 1 then return {'invalid', 0, 'perUser ' .. voucher[4]} end

-- The answer for a known order id; nil if it is new.
local function known()
  local entry = redis.call('HGET', KEYS[5], ARGV[2])
  if not entry then return nil end
  local state, number, token, user = string.match(entry, '^(%a+)|(%d+):?([%w-]*)|(.*)$')
  local isLive = state == 'placed' or state == 'paid'
  if isLive and user == ARGV[1] and (ARGV[6] == '' or token == ARGV[6]) then return {'sold', tonumber(number), ''} end
  return {'taken', 0, ''}
end

local time = redis.call('TIME')
local now = tonumber(time[1])
if now < begins then return {'early', begins - now, ''} end
if now > ends then return known() or {'late', now - ends, ''} end
if not voucher[6] then return {'adopt', 0, ''} end
if #voucher[6] > 15 or not string.find(voucher[6], '^%-?%d+$') then return {'invalid', 0, 'sold ' .. voucher[6]} end
local restocks = tonumber(voucher[5] or '0') or 0

local isHolder = redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 1
if not isHolder and stock <= 0 then return {'soldout', restocks, voucher[6]} end
local answer = known()
if answer then return answer end

local holder = redis.call('HGET', KEYS[3], ARGV[1]) or '0 -'
local last, previous, orders = string.match(holder, '^(%d+) (%S+)(.*)$')
if isHolder then
  local _, held = string.gsub(orders, '%S+', '')
  -- A user in the set without a record was added by hand.
  if held == 0 then held = 1 end
  if held >= perUser then return {'bought', held, string.sub(orders, 2)} end
  if stock <= 0 then return {'soldout', restocks, voucher[6]} end
end

-- Redis does not undo what a script did before an error, so whatever may fail comes before the first change: the keys that
-- were not read yet may be of another type, and the user may lack the right to publish.
redis.call('XLEN', KEYS[4])
redis.call('ZCARD', KEYS[6])
redis.call(ARGV[5], ARGV[4], 'placed')

local number = tonumber(last) + 1
local sold = tonumber(voucher[6])
local total = string.format('%.0f', stock + sold)
-- All three: if the stock was changed by hand, the total changes with it.
redis.call('HSET', KEYS[1], 'stock', string.format('%.0f', stock - 1), 'sold', string.format('%.0f', sold + 1), 'total', total)
redis.call('SADD', KEYS[2], ARGV[1])
local millis = time[1] .. string.format('%03d', math.floor(tonumber(time[2]) / 1000))
local entry = redis.call('XADD', KEYS[4], '*', 'kind', 'placed', 'order', ARGV[2], 'user', ARGV[1], 'number', number,
  'at', millis, 'total', total, 'limit', voucher[4], 'prev', previous)
redis.call('HSET', KEYS[3], ARGV[1], number .. ' ' .. entry .. orders .. ' ' .. ARGV[2])
redis.call('HSET', KEYS[5], ARGV[2], 'placed|' .. number .. ':' .. ARGV[6] .. '|' .. ARGV[1])
if ARGV[3] ~= '0' then redis.call('ZADD', KEYS[6], tonumber(millis) + tonumber(ARGV[3]), ARGV[2]) end
return {'sold', number, ''}
