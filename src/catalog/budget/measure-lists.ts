// §25.2: what the list of tools of each path costs a model that reads it.
import { type Clock, createTurns } from '../../platform/clock.ts';
import type { JsonObject } from '../../platform/json.ts';

export interface ListCost {
  readonly kind: 'all' | 'server' | 'view';
  /** Name of the server or view; `''` for `/mcp`. */
  readonly name: string;
  /** Shown to people in place of a view's name. */
  readonly title?: string | undefined;
  /** The number of tools that are listed. */
  readonly tools: number;
  /** About how many tokens they are. */
  readonly tokens: number;
  /** The ten that cost most, the dearest first. */
  readonly expensive: readonly ToolCost[];
  /** Some servers list other tools for each user, or want a login first: what users see may be more. */
  readonly isPersonal: boolean;
}

interface ToolCost {
  readonly name: string;
  readonly tokens: number;
}

/** Beyond it a list is worth a warning: models get worse at choosing, and each conversation begins with it. */
export const WARNED_TOKENS = 20_000;
const MOST_EXPENSIVE = 10;

/** A list to measure. */
export interface MeasuredPath extends Pick<ListCost, 'kind' | 'name' | 'title' | 'isPersonal'> {
  /** The tools as clients of this path get them. */
  listTools(): Promise<readonly JsonObject[]>;
}

/** One after the other, in turns of the event loop. */
export async function measureLists(
  paths: readonly MeasuredPath[],
  clock: Clock,
): Promise<readonly ListCost[]> {
  const countTokens = await loadCountTokens();
  const costs: ListCost[] = [];
  for (const { listTools, ...path } of paths) {
    costs.push({ ...path, ...(await measure(await listTools(), countTokens, clock)) });
  }
  return costs;
}

async function measure(tools: readonly JsonObject[], countTokens: CountTokens, clock: Clock) {
  const work = createTurns(clock);
  const costs: ToolCost[] = [];
  for (const tool of tools) {
    if (work.isOver()) await work.next();
    costs.push({ name: String(tool.name), tokens: countTokens(tool) });
  }
  return {
    tools: costs.length,
    tokens: costs.reduce((sum, { tokens }) => sum + tokens, 0),
    expensive: costs.toSorted((one, other) => other.tokens - one.tokens).slice(0, MOST_EXPENSIVE),
  };
}

// §25.2: about how many tokens a model reads of a tool: its name, its description and the schema of its arguments.

/** Keyed by the item itself: lists keep theirs for as long as they are the same. */
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
