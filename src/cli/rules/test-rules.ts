// `postern rules test`: shows which items a user sees, and which rule applies.
import { builtInCatalog } from '../../built-in/index.ts';
import { createPlannedView } from '../../catalog/plan.ts';
import { createNaming } from '../../catalog/prepare-list.ts';
import { UpstreamCatalogs } from '../../catalog/upstream-catalogs.ts';
import { parsePattern } from '../../control/rules/compile-rules.ts';
import { createRules } from '../../control/rules/create-rules.ts';
import type { RuledItem } from '../../control/rules/rules.ts';
import type { GatewayFile } from '../../gateway/configuration/gateway-file.ts';
import { readClaimedClient, readEmail } from '../../http/endpoint/message.ts';
import { createLock, createLockPolicy } from '../../lock/lock.ts';
import { joinPolicies, type Policy, type PolicyCaller } from '../../mcp/calls/policy.ts';
import type { Cursor } from '../../mcp/catalog/catalog.ts';
import { LISTING_CONTEXT, serveOwnCatalog } from '../../mcp/catalog/own-catalog.ts';
import { ALL_KINDS } from '../../mcp/protocol/list-kinds.ts';
import { systemClock } from '../../platform/clock.ts';
import { getMessage } from '../../platform/error-code.ts';
import { escapeInvisible } from '../../platform/invisible.ts';
import { isStringArray, type JsonObject, parseObject } from '../../platform/json.ts';
import { quote } from '../../platform/text.ts';
import { findFacts } from '../../servers/transport/transports.ts';
import { prepareEnvironment } from '../command-line/env-file.ts';
import { UsageError } from '../command-line/errors.ts';
import type { Flags, Invocation, InvokedProcess, Texts } from '../command-line/invocation.ts';
import { readTextFile } from '../command-line/read-input.ts';
import { showSpinner } from '../command-line/terminal.ts';
import { findLockPath, readLockFile } from '../setup/lock-file-on-disk.ts';
import { createStderrLog, openServers } from '../setup/open-servers.ts';
import { readConfiguration } from '../setup/read-setup.ts';
import {
  findIdlePatterns,
  findMissingEmail,
  type JudgedItem,
  renderItems,
  suggestNames,
  toJson,
} from './report.ts';

/** `item` and `tool` select what is tested; by default, all items are. */
type RulesTestOptions = Texts<
  'config' | 'claims' | 'client' | 'view' | 'tool' | 'args' | 'annotations'
> &
  Flags<'json'> & { readonly item: readonly string[] };

/** @throws UsageError, CommandError */
export async function testRules(
  options: RulesTestOptions,
  { process, console }: Invocation,
): Promise<void> {
  prepareEnvironment(options, process.env);
  const { path, file } = await readConfiguration('rules test', process.env);
  const user = readClaims(options.claims);
  const clientId = options.client ?? readClaimedClient(user.claims);
  const caller: PolicyCaller = { user, clientId, view: options.view };
  const includes = createViewFilter(file, options.view);
  const rules = await createRules({ clock: systemClock }, file.rules);
  const items = (await findItems(path, file, options, process)).filter(includes);
  const judged = items.map((item): JudgedItem => {
    const decision = rules.decide(item, caller);
    if (decision.kind !== 'denied' || item.args === undefined) return { item, decision };
    // Without arguments, a condition on arguments counts as fulfilled.
    const listed = rules.decide({ ...item, args: undefined }, caller);
    return listed.kind !== 'allowed'
      ? { item, decision }
      : { item, decision, withOtherArgs: listed.rule };
  });
  const isAboutAll = options.tool === undefined && options.item.length === 0;
  const ofNames = isAboutAll
    ? findIdlePatterns(file, items)
    : await suggestNames(judged, path, file);
  const notes = [...findMissingEmail(file, user), ...ofNames];
  const asked = { path, meansNoRules: file.meansNoRules, user, clientId, notes };
  console.log(escapeInvisible(options.json ? toJson(judged) : renderItems(judged, asked)));
  // The JSON lists items, and has no place for general notes.
  if (options.json) for (const sentence of notes) console.error(escapeInvisible(sentence));
  const isRefused = judged.some(({ decision }) => decision.kind !== 'allowed');
  if (options.tool !== undefined && isRefused) process.exitCode = 1;
}

/** Returns whether the view has an item; without a view, every item passes. @throws UsageError */
function createViewFilter(file: GatewayFile, name: string | undefined) {
  if (name === undefined) return () => true;
  const views = file.views ?? [];
  const config = views.find((view) => view.name === name);
  if (config === undefined) {
    const known = views.map((view) => view.name);
    throw new UsageError(
      `--view: the file has no view ${quote(name)}. ${known.length === 0 ? 'It has none.' : `It has ${known.join(', ')}.`}`,
    );
  }
  return createPlannedView(config, createNaming(file)).includes;
}

/** One call, the given names, or all items. */
async function findItems(
  path: string,
  file: GatewayFile,
  { tool, args, item: names, annotations }: RulesTestOptions,
  process: InvokedProcess,
): Promise<readonly RuledItem[]> {
  const claimed = readObject('--annotations', annotations);
  const { findOwners } = createNaming(file);
  const toItem = (pattern: string, called?: JsonObject): RuledItem => {
    const { kind, glob: name } = parsePattern(pattern);
    const [server = ''] = kind === 'resource' ? [] : findOwners(name);
    return { kind, name, server, annotations: claimed, args: called };
  };
  if (tool !== undefined) return [{ ...toItem(tool, readObject('--args', args)), kind: 'tool' }];
  return names.length > 0 ? names.map((name) => toItem(name)) : listItems(path, file, process);
}

function readObject(option: string, text = '{}') {
  const value = parseObject(text);
  if (value === undefined) throw new UsageError(`${option} must be a JSON object.`);
  return value;
}

/** @throws UsageError if the file is not a JSON object. */
function readClaims(path: string | undefined) {
  if (path === undefined)
    throw new UsageError(
      'postern rules test needs the claims of a token, for example --claims ann.json.',
    );
  const text = readTextFile(path, (error) => {
    const said = getMessage(error);
    throw new UsageError(`--claims: ${path} cannot be read (${said}).`);
  });
  const claims = parseObject(text);
  if (claims === undefined)
    throw new UsageError(
      '--claims must be a file with a JSON object: the claims of a user, for example {"sub": "ann", "groups": ["staff"]}.',
    );
  const { sub, name, groups } = claims;
  return {
    sub: typeof sub === 'string' ? sub : '',
    claims,
    token: '',
    ...readEmail(claims),
    ...(typeof name === 'string' && { name }),
    ...(isStringArray(groups) && { groups }),
  };
}

// All items as the gateway would list them, including names, collisions and the lock.

/** Servers that cannot be reached, or that respond to users only, are skipped; the log says so. */
async function listItems(
  path: string,
  file: GatewayFile,
  process: InvokedProcess,
): Promise<readonly RuledItem[]> {
  const log = createStderrLog(process);
  const found = new Map<string, RuledItem>();
  const noteItems: Policy = {
    judge({ kind, name, server, annotations }, _caller, args) {
      found.set(`${kind} ${name}`, { kind, name, server, annotations, args });
      return { kind: 'allowed' };
    },
  };
  const lockFile = readLockFile(findLockPath(path));
  const lock = lockFile && createLock(lockFile);
  const lockPolicies = lock ? [createLockPolicy(lock)] : [];
  const servers = await openServers(file, process.env, log);
  const { runtime } = servers;
  const upstreams = { ...runtime.config.upstreams, listWaitMs: LIST_WAIT_MS };
  const catalogs = new UpstreamCatalogs(
    { ...runtime, config: { ...runtime.config, upstreams } },
    {
      file,
      lock,
      policies: joinPolicies([...lockPolicies, noteItems]),
      // Only names are needed here; no call is made.
      guards: undefined,
      checkSchema: undefined,
    },
    {
      builtIn: serveOwnCatalog(builtInCatalog),
      openUpstream: servers.openUpstream,
      findFacts,
      relay: { relayCall: failCall, connectUser: { connect: failCall, connectAndTell: failCall } },
    },
  );
  const endSpinner = showSpinner('Asking', process);
  try {
    for (const kind of ALL_KINDS) {
      let cursor: Cursor;
      do cursor = (await catalogs.all.list(kind, cursor, LISTING_CONTEXT)).nextCursor;
      while (cursor !== undefined);
    }
    return [...found.values()];
  } finally {
    endSpinner();
    await catalogs.close(0);
    await servers.close();
  }
}

const LIST_WAIT_MS = 15_000;

const failCall = () => Promise.reject(new Error('Nothing is called here'));
