// §25.3: what a model is told of tools that were found: whole where they fit, else how to ask for the rest.

import { isObject, type JsonObject } from '../../platform/json.ts';
import { shorten } from '../../platform/text.ts';
import type { CountTokens } from '../budget/count-tokens.ts';
import { cleanForeignText } from '../catalog/clean-item.ts';
import { type Entry, showNumbers } from '../catalog/prepare-list.ts';
import { DESCRIBE } from './search-tools.ts';

/** Tokens of one result's names, descriptions and schemas. */
const MAX_TOKENS = 4_000;

/** Of a tool whose schema is left out. */
const MAX_SHORT_DESCRIPTION = 300;
const MAX_SHORT_ARGUMENTS = 20;
const MAX_SHORT_NAME = 64;

export interface ShownTools {
  readonly tools: readonly JsonObject[];
  /** Those that are not shown whole. */
  readonly leftOut: readonly string[];
}

/** What does not fit is shown shortly, and keeps no smaller one after it out. */
export function showTools(entries: readonly Entry[], countTokens: CountTokens): ShownTools {
  const leftOut: string[] = [];
  let left = MAX_TOKENS;
  const tools = entries.map((entry) => {
    const tokens = countTokens(entry.item);
    if (tokens <= left) {
      left -= tokens;
      return showWhole(entry);
    }
    leftOut.push(entry.name);
    return showShortly(entry);
  });
  return { tools, leftOut };
}

/** The first is always whole: without its schema nobody could call it. */
export function describeTools(entries: readonly Entry[], countTokens: CountTokens): ShownTools {
  const tools: JsonObject[] = [];
  const leftOut: string[] = [];
  let left = MAX_TOKENS;
  for (const entry of entries) {
    const tokens = countTokens(entry.item);
    if (tools.length > 0 && tokens > left) {
      leftOut.push(entry.name);
      continue;
    }
    tools.push(showWhole(entry));
    left -= tokens;
  }
  return { tools, leftOut };
}

/** For the model. */
export const explainLeftOut = (names: readonly string[]): string =>
  `Left out, since they are long: ask ${DESCRIBE} for ${names.join(', ')}.`;

const showWhole = (entry: Entry): JsonObject => {
  const { name, title, description, inputSchema, annotations } = showNumbers(entry, entry.item);
  return {
    name,
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    inputSchema,
    ...(annotations !== undefined && { annotations }),
  };
};

function showShortly({ name, item }: Entry): JsonObject {
  const { description, inputSchema } = item;
  const properties = isObject(inputSchema) ? inputSchema.properties : undefined;
  const names = isObject(properties) ? Object.keys(properties) : [];
  return {
    name,
    ...(typeof description === 'string' && {
      description: cleanForeignText(description, MAX_SHORT_DESCRIPTION),
    }),
    arguments: names.slice(0, MAX_SHORT_ARGUMENTS).map((one) => shorten(one, MAX_SHORT_NAME)),
  };
}
