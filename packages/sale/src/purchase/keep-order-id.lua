-- Reserves an order id that a caller chose for one voucher, or releases it if nothing was sold under it. Vouchers are in
-- different slots, so no purchase script can look at another voucher's orders.
--
-- KEYS  1 the order id: a hash of `voucher`, and a field for each purchase under it that is in progress or was made
-- ARGV  1 voucher id  2 token of this purchase  3 milliseconds that the id is kept; 0: this purchase has sold nothing
--       4 how many purchases are tracked separately
-- Returns the id of the voucher that it belongs to
local voucher = redis.call('HGET', KEYS[1], 'voucher')
if voucher and voucher ~= ARGV[1] then return voucher end
if ARGV[3] == '0' then
  redis.call('HDEL', KEYS[1], 'call ' .. ARGV[2])
  if redis.call('HLEN', KEYS[1]) == 1 then redis.call('DEL', KEYS[1]) end
  return ARGV[1]
end
-- Beyond the tracked purchases, one may have sold something: keep the id.
local token = redis.call('HLEN', KEYS[1]) > tonumber(ARGV[4]) and 'others' or 'call ' .. ARGV[2]
redis.call('HSET', KEYS[1], 'voucher', ARGV[1], token, '')
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return ARGV[1]
