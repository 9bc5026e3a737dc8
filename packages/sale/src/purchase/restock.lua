-- Adds items to a voucher's stock, or removes unsold ones.
--
-- KEYS  1 voucher hash  2 restocked zset
-- ARGV  1 how many (negative: remove, at most all that are left)  2 token of this call: sent twice it counts once
--       3 channel  4 publish command  5 how many tokens are kept  6 the highest stock allowed
-- Returns {code, stock, total, text}
--   'done'     with the stock and total now
--   'unknown'  there is no such voucher
--   'adopt'    run adopt.lua, then try again
--   'invalid'  the stock or the live orders are not a whole number: the text says which, and its value
--   'beyond'   the stock would exceed the highest allowed: nothing was changed; the current stock and total
local voucher = redis.call('HMGET', KEYS[1], 'stock', 'sold')
if not voucher[1] then return {'unknown', 0, 0} end
if #voucher[1] > 15 or not string.find(voucher[1], '^%-?%d+$') then return {'invalid', 0, 0, 'stock ' .. voucher[1]} end
if not voucher[2] then return {'adopt', 0, 0} end
if #voucher[2] > 15 or not string.find(voucher[2], '^%-?%d+$') then return {'invalid', 0, 0, 'sold ' .. voucher[2]} end
local stock, sold = tonumber(voucher[1]), tonumber(voucher[2])
if redis.call('ZSCORE', KEYS[2], ARGV[2]) then return {'done', stock, stock + sold} end
if stock + tonumber(ARGV[1]) > tonumber(ARGV[6]) then return {'beyond', stock, stock + sold} end

local count = math.max(tonumber(ARGV[1]), -math.max(stock, 0))
stock = stock + count
local restocks = string.format('%.0f', (tonumber(redis.call('HGET', KEYS[1], 'restocks') or '0') or 0) + 1)
-- Writes what is there: refused if Redis may not write now (no memory, a replica), before anything is announced.
redis.call('HSET', KEYS[1], 'stock', voucher[1])
-- Before the first change, because Redis would not undo one: the user may lack the right to publish.
if count > 0 then redis.call(ARGV[4], ARGV[3], 'restock:' .. restocks) end

local time = redis.call('TIME')
redis.call('ZADD', KEYS[2], time[1] * 1000000 + time[2], ARGV[2])
redis.call('ZREMRANGEBYRANK', KEYS[2], 0, -1 - ARGV[5])
redis.call('HSET', KEYS[1], 'stock', string.format('%.0f', stock), 'total', string.format('%.0f', stock + sold))
if count > 0 then redis.call('HSET', KEYS[1], 'restocks', restocks) end
return {'done', stock, stock + sold}
