-- Sells one item of a voucher to one user, all or nothing.
--
-- KEYS  1 voucher hash  2 users set  3 counts hash  4 orders stream  5 states hash  6 unpaid zset
-- ARGV  1 user id  2 order id  3 milliseconds until an unpaid order is taken back (0 = never)
--       4 channel  5 publish command (PUBLISH or SPUBLISH)
-- Returns {code, number}
--   'sold'     the number of this user's order (1, 2, …)
--   'unknown'  0: there is no such voucher
--   'early'    seconds until it begins
--   'late'     seconds since it ended
--   'soldout'  how often stock came back so far: what a process remembers holds until that number moves
--   'bought'   how many the user holds already
-- Time is Redis' own: a client's clock can open no sale.
local voucher = redis.call('HMGET', KEYS[1], 'begin', 'end', 'stock', 'perUser', 'restocks')
if not voucher[1] then return {'unknown', 0} end

local time = redis.call('TIME')
local now = tonumber(time[1])
if now < tonumber(voucher[1]) then return {'early', tonumber(voucher[1]) - now} end
if now > tonumber(voucher[2]) then return {'late', now - tonumber(voucher[2])} end

local perUser = tonumber(voucher[4] or '1')
local held = redis.call('SISMEMBER', KEYS[2], ARGV[1])
if held == 1 and perUser > 1 then held = tonumber(redis.call('HGET', KEYS[3], ARGV[1]) or '1') end
if held >= perUser then return {'bought', held} end

if tonumber(voucher[3]) <= 0 then return {'soldout', tonumber(voucher[5] or '0')} end

local number = held + 1
redis.call('HINCRBY', KEYS[1], 'stock', -1)
redis.call('SADD', KEYS[2], ARGV[1])
if perUser > 1 then redis.call('HSET', KEYS[3], ARGV[1], number) end
local millis = time[1] .. string.format('%03d', math.floor(tonumber(time[2]) / 1000))
redis.call('XADD', KEYS[4], '*', 'kind', 'placed', 'order', ARGV[2], 'user', ARGV[1], 'number', number, 'at', millis)
redis.call('HSET', KEYS[5], ARGV[2], 'placed|' .. number .. '|' .. ARGV[1])
if ARGV[3] ~= '0' then redis.call('ZADD', KEYS[6], tonumber(millis) + tonumber(ARGV[3]), ARGV[2]) end
redis.call(ARGV[5], ARGV[4], 'placed')
return {'sold', number}
