// §25.2: about how many tokens a model reads of a tool: its name, its description and the schema of its arguments.
import type { JsonObject } from '../../platform/json.ts';

/** By the item itself: lists keep theirs for as long as they are the same. */
export type CountTokens = (tool: JsonObject) => number;

const known = new WeakMap<JsonObject, number>();

/** Loaded where somebody asks. Models differ by some percent, and the estimate does no more (docs/decisions/0020-tokens.md). */
export async function loadCountTokens(): Promise<CountTokens> {
  const { estimateTokenCount } = await import('tokenx');

  return function countTokens(tool) {
    const count = known.get(tool) ?? estimateTokenCount(writeForModel(tool));
    known.set(tool, count);
    return count;
  };
}

/** As clients pass it on; output schemas, annotations and icons they keep. */
const writeForModel = ({ name, description, inputSchema }: JsonObject): string =>
  JSON.stringify({ name, description, inputSchema });
