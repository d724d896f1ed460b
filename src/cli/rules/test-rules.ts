// `postern rules test`: what a user sees, and which rule says so.
import { readFileSync } from 'node:fs';
import { systemClock } from '../../core/clock.ts';
import type { GatewayFile } from '../../core/gateway-file/gateway-file.ts';
import { type JsonObject, parseObject } from '../../core/json.ts';
import { readClaimedClient } from '../../features/rules/client-of.ts';
import { createRules } from '../../features/rules/create-rules.ts';
import { parsePattern } from '../../features/rules/may.ts';
import type { RuleCaller, RuledItem } from '../../features/rules/rules.ts';
import { createNaming } from '../../features/upstreams/catalog/naming.ts';
import { type RulesTestOptions, UsageError } from '../command-line.ts';
import { prepareEnvironment } from '../env-file.ts';
import { readConfiguration } from '../lock/read-configuration.ts';
import { findIdlePatterns } from './find-idle-patterns.ts';
import { listItems } from './list-items.ts';
import { readClaims } from './read-claims.ts';
import { type JudgedItem, renderItems, toJson } from './render-items.ts';

/** @throws UsageError, CommandError */
export async function testRules(options: RulesTestOptions): Promise<void> {
  prepareEnvironment(options);
  const { path, file } = await readConfiguration('rules test');
  const user = readClaims(readInput(options.claims));
  const clientId = options.client ?? readClaimedClient(user.claims);
  const caller: RuleCaller = { user, clientId };
  const rules = await createRules(file.rules, { clock: systemClock });
  const items = await findItems(path, file, options);
  const judged = items.map((item): JudgedItem => ({ item, decision: rules.decide(item, caller) }));
  const isAboutAll = options.tool === undefined && options.items.length === 0;
  const idlePatterns = isAboutAll ? findIdlePatterns(file, items) : [];
  const asked = { path, user, clientId, idlePatterns };
  console.log(options.isJson ? toJson(judged) : renderItems(judged, asked));
  const isRefused = judged.some(({ decision }) => decision.kind !== 'allowed');
  if (options.tool !== undefined && isRefused) process.exitCode = 1;
}

function readInput(path: string | undefined): string {
  if (path === undefined) {
    throw new UsageError(
      'postern rules test needs the claims of a token, for example --claims ann.json.',
    );
  }
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new UsageError(`--claims: ${path} cannot be read (${describeError(error)}).`);
  }
}

const describeError = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);

/** One call, the names given, or all that there is. */
async function findItems(
  path: string,
  file: GatewayFile,
  { tool, args, items, annotations }: RulesTestOptions,
): Promise<readonly RuledItem[]> {
  const claimed = readObject('--annotations', annotations);
  const { findOwners } = createNaming(file);
  const toItem = (pattern: string, called?: JsonObject): RuledItem => {
    const { kind, glob: name } = parsePattern(pattern);
    const [server = ''] = kind === 'resource' ? [] : findOwners(name);
    return { kind, name, server, annotations: claimed, args: called };
  };
  if (tool !== undefined) return [{ ...toItem(tool, readObject('--args', args)), kind: 'tool' }];
  return items.length > 0 ? items.map((name) => toItem(name)) : listItems(path, file);
}

function readObject(option: string, text = '{}'): JsonObject {
  const value = parseObject(text);
  if (value === undefined) throw new UsageError(`${option} must be a JSON object.`);
  return value;
}
