-- Ends a turn of a pre-warm job: takes the job away, or puts it off to its next time. One that was cancelled meanwhile stays away.
--
-- KEYS 1 when each job is due, a sorted set of ids; 2 the jobs, a hash by id
-- ARGV 1 the job's id, 2 the time of its next turn in ms, 3 the job as JSON; both empty where it does not come again
-- Returns 1 where the job was still there, else 0.
if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 0 then return 0 end
if ARGV[3] == '' then
  redis.call('HDEL', KEYS[2], ARGV[1])
  redis.call('ZREM', KEYS[1], ARGV[1])
else
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
  redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
end
return 1
