-- Moves an entry that cannot be stored to the dead letters, once only.
--
-- KEYS  1 orders stream  2 dead-letter stream  3 faults hash
-- ARGV  1 group  2 entry id  3 the most dead letters  4… the dead letter's fields
-- Returns 'done', 'gone' if another worker has settled the entry, or 'full': then it stays pending
if #redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[2], ARGV[2], 1) == 0 then return 'gone' end
if redis.call('XLEN', KEYS[2]) >= tonumber(ARGV[3]) then return 'full' end
redis.call('XADD', KEYS[2], '*', unpack(ARGV, 4))
redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
redis.call('HDEL', KEYS[3], ARGV[2])
return 'done'
