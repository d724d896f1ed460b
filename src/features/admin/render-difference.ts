// §22.4: what differs from what was approved, as texts that can be laid side by side.
import { hasLevels, type JsonObject } from '../../core/json.ts';
import { toShellWord } from '../../core/shell-word.ts';
import type { LockDifference } from '../upstreams/catalog/list-lock-differences.ts';

/** Of a description or a schema: the rest is for `postern lock --check`. */
const MAX_CHARACTERS = 4_000;

/** What an operator runs where the lock lies. */
export const renderLockCommand = (configPath: string | undefined): string =>
  configPath === undefined ? 'postern lock' : `postern lock --config ${toShellWord(configPath)}`;

export const renderDifference = ({ members, ...difference }: LockDifference): JsonObject => ({
  ...difference,
  members: members.map(({ name, before, now }) => ({
    name,
    ...renderText('before', before),
    ...renderText('now', now),
  })),
});

function renderText(side: 'before' | 'now', value: unknown): JsonObject {
  if (value === undefined) return {};
  const text = typeof value === 'string' ? value : renderJson(value);
  return text.length <= MAX_CHARACTERS
    ? { [side]: text }
    : { [side]: text.slice(0, MAX_CHARACTERS), isCut: true };
}

/** Indented where that is short: each line of what nests deep would have more indentation than text. */
function renderJson(value: unknown): string {
  const text = JSON.stringify(value);
  const isReadable = text.length <= MAX_CHARACTERS && hasLevels(value, MAX_LEVELS);
  return isReadable ? JSON.stringify(value, undefined, 2) : text;
}

const MAX_LEVELS = 16;
