import { createHash } from 'node:crypto';
import type { Client } from './link.ts';

/** Runs a Lua script: one command, EVALSHA, and EVAL only after Redis forgot it. */
export type Script = (
  client: Client,
  keys: readonly string[],
  args: readonly (string | number)[],
) => Promise<unknown>;

export function createScript(source: string): Script {
  const sha = createHash('sha1').update(source).digest('hex');

  return async function run(client, keys, args) {
    try {
      return await client.evalsha(sha, keys.length, ...keys, ...args);
    } catch (error) {
      const forgotten = error instanceof Error && error.message.startsWith('NOSCRIPT');
      if (!forgotten) throw error;
      return client.eval(source, keys.length, ...keys, ...args);
    }
  };
}
