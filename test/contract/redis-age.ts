import type { Redis } from 'ioredis';

/**
 * Lets everything in a Redis grow older by `ms`, as if that time had passed: keys by their
 * time-to-live, entries of sorted sets by their score, permits taken of windows in advance by when they end.
 */
export async function age(client: Redis, ms: number): Promise<void> {
  await client.eval(AGE, 0, ms);
}

const AGE = `
for _, key in ipairs(redis.call('KEYS', '*')) do
  local left = redis.call('PTTL', key)
  if left >= 0 and left <= tonumber(ARGV[1]) then
    redis.call('DEL', key)
  else
    if left >= 0 then redis.call('PEXPIRE', key, left - ARGV[1]) end
    if redis.call('TYPE', key).ok == 'zset' then
      for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do
        redis.call('ZINCRBY', key, -ARGV[1], member)
      end
    end
    if string.find(key, '^ratelimit:leased:') and redis.call('TYPE', key).ok == 'hash' then
      local permits = redis.call('HGETALL', key)
      redis.call('DEL', key)
      for at = 1, #permits, 2 do
        redis.call('HSET', key, string.format('%.0f', permits[at] - ARGV[1]), permits[at + 1])
      end
      redis.call('PEXPIRE', key, left - ARGV[1])
    end
  end
end
`;
