// §22.4: what differs from what was approved, as texts that can be laid side by side.
import { hasLevels, type JsonObject } from '../../core/json.ts';
import { toShellWord } from '../../core/shell-word.ts';
import type { ReviewedDifference } from '../upstreams/catalog/review-lock.ts';

/** How much of a description or a schema is shown. */
interface Extent {
  /** The rest is cut. */
  readonly characters: number;
  /** JSON that is longer is on one line. */
  readonly indented: number;
}

/** In a list, which is to be looked through. */
export const EXCERPT: Extent = { characters: 4_000, indented: 4_000 };
/** What is to be approved. */
export const WHOLE: Extent = { characters: Number.POSITIVE_INFINITY, indented: 50_000 };

/** What an operator runs where the lock lies. */
export const renderLockCommand = (lockCommand: string, configPath: string | undefined): string =>
  configPath === undefined ? lockCommand : `${lockCommand} --config ${toShellWord(configPath)}`;

export const renderDifference = (
  { members, ...difference }: ReviewedDifference,
  extent: Extent,
): JsonObject => ({
  ...difference,
  members: members.map(({ name, before, now }) => ({
    name,
    ...renderText('before', before, extent),
    ...renderText('now', now, extent),
  })),
});

function renderText(side: 'before' | 'now', value: unknown, extent: Extent): JsonObject {
  if (value === undefined) return {};
  const text = typeof value === 'string' ? value : renderJson(value, extent);
  return text.length <= extent.characters
    ? { [side]: text }
    : { [side]: text.slice(0, extent.characters), isCut: true };
}

/** Indented where that is short: each line of what nests deep would have more indentation than text. */
function renderJson(value: unknown, { indented }: Extent): string {
  const text = JSON.stringify(value);
  const isReadable = text.length <= indented && hasLevels(value, MAX_LEVELS);
  return isReadable ? JSON.stringify(value, undefined, 2) : text;
}

const MAX_LEVELS = 16;
