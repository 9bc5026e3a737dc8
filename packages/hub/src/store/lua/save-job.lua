-- Saves a pre-warm job, if there is room for one more.
--
-- KEYS 1 when each job is due, a sorted set of ids; 2 the jobs, a hash by id
-- ARGV 1 the job's id, 2 the time at which it is due in ms, 3 the job as JSON, 4 most jobs to keep
-- Returns 1 if it is kept, 0 if there are too many.
if redis.call('HLEN', KEYS[2]) >= tonumber(ARGV[4]) and redis.call('HEXISTS', KEYS[2], ARGV[1]) == 0 then return 0 end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
return 1
