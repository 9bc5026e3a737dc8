-- Ends a run of a pre-warm job: removes the job, or schedules its next run. A job that was cancelled meanwhile stays
-- removed.
--
-- KEYS 1 when each job is due, a sorted set of ids; 2 the jobs, a hash by id
-- ARGV 1 the job's id, 2 the time of its next run in ms, 3 the job as JSON; both empty if there is none
-- Returns 1 if the job was still there, otherwise 0.
if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 0 then return 0 end
if ARGV[3] == '' then
  redis.call('HDEL', KEYS[2], ARGV[1])
  redis.call('ZREM', KEYS[1], ARGV[1])
else
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
  redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
end
return 1
