-- An owner stops waiting: it leaves the queue, and passes the lock on if it was just reserved for the owner.
--
-- ARGV 5 owner
forget(ARGV[5])
if redis.call('HDEL', KEYS[1], ARGV[5]) == 1 then passOn() end
return 1
