-- Keeps an order id that a caller chose to one voucher, or lets it go where nothing was sold under it. Vouchers lie in
-- different slots, so no purchase script can look at another's orders.
--
-- KEYS  1 the order id: a hash of `voucher`, and a field for each purchase under it that is under way or was made
-- ARGV  1 voucher id  2 token of this purchase  3 milliseconds that the id is kept; 0: this purchase has sold nothing
--       4 how many purchases are told apart
-- Returns the id of the voucher that it belongs to
local voucher = redis.call('HGET', KEYS[1], 'voucher')
if voucher and voucher ~= ARGV[1] then return voucher end
if ARGV[3] == '0' then
  redis.call('HDEL', KEYS[1], 'call ' .. ARGV[2])
  if redis.call('HLEN', KEYS[1]) == 1 then redis.call('DEL', KEYS[1]) end
  return ARGV[1]
end
-- Of more purchases than are told apart one may have sold: then the id stays.
local token = redis.call('HLEN', KEYS[1]) > tonumber(ARGV[4]) and 'others' or 'call ' .. ARGV[2]
redis.call('HSET', KEYS[1], 'voucher', ARGV[1], token, '')
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return ARGV[1]
