-- Registers a voucher that has no count of live orders: one that was just opened, or a hash made by hand.
--
-- KEYS  1 voucher hash  2 users set  3 holders hash
-- Returns 1 if it did something, 0 if there was nothing to do
--
-- If the hash was deleted and created again, its earlier orders are still in the other keys, and still live.
local voucher = redis.call('HMGET', KEYS[1], 'stock', 'total', 'sold')
if not voucher[1] or voucher[3] or not string.find(voucher[1], '^%-?%d+$') then return 0 end
local stock = tonumber(voucher[1])
local sold
if voucher[2] and string.find(voucher[2], '^%d+$') then
  sold = math.max(0, tonumber(voucher[2]) - stock)
else
  sold = redis.call('SCARD', KEYS[2])
  for _, holder in ipairs(redis.call('HVALS', KEYS[3])) do
    local _, words = string.gsub(holder, '%S+', '')
    if words > 3 then sold = sold + words - 3 end
  end
end
redis.call('HSET', KEYS[1], 'sold', string.format('%.0f', sold), 'total', string.format('%.0f', stock + sold))
return 1
