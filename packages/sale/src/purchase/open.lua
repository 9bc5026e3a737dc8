-- Puts a voucher on sale, or changes its hours; existing stock is kept.
--
-- KEYS  1 voucher hash
-- ARGV  1 begin  2 end  3 stock  4 orders a user may hold
-- Returns 1 if the voucher is new, 0 if it existed.
local isNew = redis.call('HSETNX', KEYS[1], 'stock', ARGV[3])
if isNew == 1 then redis.call('HSET', KEYS[1], 'restocks', 0) end
redis.call('HSET', KEYS[1], 'begin', ARGV[1], 'end', ARGV[2], 'perUser', ARGV[4])
return isNew
