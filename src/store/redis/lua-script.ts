// The steps that must be atomic. Time is the server's, so that replicas agree.
// No script decodes or encodes a client's JSON.
import { createHash } from 'node:crypto';
import type { RedisClient } from './connection.ts';

export interface LuaScript {
  /** One command, EVALSHA, and EVAL only after Redis forgot the script. */
  run(
    client: RedisClient,
    keys: readonly string[],
    args: readonly (string | number | Buffer)[],
  ): Promise<unknown>;
}

export function createScript(source: string): LuaScript {
  const sha = createHash('sha1').update(source).digest('hex');

  return {
    async run(client, keys, args) {
      try {
        return await client.evalsha(sha, keys.length, ...keys, ...args);
      } catch (error) {
        const isForgotten = error instanceof Error && error.message.startsWith('NOSCRIPT');
        if (!isForgotten) throw error;
        return client.eval(source, keys.length, ...keys, ...args);
      }
    },
  };
}

/** The server's time in milliseconds. */
export const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`;
