// Bytes of values that count in a budget: a sorted set of entries by the end of their time.
import { type ByteEntry, MIN_ENTRY_BYTES, type Store } from '../store.ts';
import type { CommandRunner } from './command-runner.ts';
import { reserveBytesScript } from './scripts.ts';

export function createRedisByteBudgets(
  commands: CommandRunner,
): Pick<Store, 'reserveBytes' | 'releaseBytes'> {
  return {
    async reserveBytes(budget, entry, { maxBytes, ttlSeconds }) {
      const args = [toMember(entry), countBytes(entry), maxBytes, ttlSeconds];
      return (await commands.run((client) => reserveBytesScript.run(client, [budget], args))) === 1;
    },
    async releaseBytes(budget, entry) {
      await commands.run((client) => client.zrem(budget, toMember(entry)));
    },
  };
}

const countBytes = ({ bytes }: ByteEntry): number => Math.max(bytes, MIN_ENTRY_BYTES);

/** The script reads the bytes from it. */
const toMember = (entry: ByteEntry): string => `${countBytes(entry)}:${entry.name}`;
