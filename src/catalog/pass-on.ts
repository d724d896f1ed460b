// §18.3: passes a call on to its server, and the result back in a form that clients can read, with URIs that clients know. Links in
// results are remembered.
import { fail, failUpstream, GatewayError } from '../errors/gateway-error.ts';
import { GUARD_POINTS } from '../mcp/calls/guards.ts';
import type { RawResult } from '../mcp/catalog/catalog.ts';
import type { CallerContext } from '../mcp/catalog/served-catalog.ts';
import { Findings, RESULTS } from '../mcp/protocol/fit.ts';
import type { ListKind } from '../mcp/protocol/list-kinds.ts';
import type { Era } from '../mcp/protocol/revisions.ts';
import type { RelayedRequest } from '../mcp/upstream/server-request.ts';
import { findUnread } from '../mcp/upstream/unread-result.ts';
import { isObject, type JsonObject, noteWritten } from '../platform/json.ts';
import {
  addMember,
  editValue,
  findText,
  toRawMembers,
  type ValueEdit,
} from '../platform/noted-json.ts';
import { cutJson, type JsonPath } from '../platform/splice-json.ts';
import { isAppUri, listAppUris, toMovedUri, toSharedUri } from './apps/app-tools.ts';
import { nameLinkOwner } from './linked-resources.ts';
import type { Who } from './plan.ts';
import type { ServedPath } from './served-path.ts';
import { failAtServer } from './view.ts';

/** Sends a request to the server with this name. */
export type PassOn = (
  server: string,
  who: Who,
  request: RelayedRequest,
  context: CallerContext,
) => Promise<RawResult>;

/** Limit per result for the URIs that are remembered, and for those that are looked up. */
const MAX_LINKS = 100;
const MAX_LOOKED_UP = 10_000;

export function createPassOn({ view, joined, relayCall, links, served }: ServedPath): PassOn {
  const isOwn = view.shown === 'own';

  return async function passOn(server, who, request, context) {
    const { inFlight, upstream } = view.findServer(server) ?? failGone(server);
    const { meta, era } = context.relay;
    const passed =
      meta === undefined || isMetaUnseen(request)
        ? request
        : { ...request, params: { ...request.params, _meta: toRawMembers(meta) } };
    let result: RawResult;
    inFlight.enter();
    try {
      result = await relayCall(upstream, who.upstream, passed, context);
    } catch (thrown) {
      return failAsAsked(thrown, request);
    } finally {
      inFlight.leave();
    }
    return request.method === 'tasks/get' && isObject(result.result)
      ? finishTask(server, who, result, era)
      : renameUris(server, who, request, fitResult(server, request, era, result));
  };

  /**
   * True if `_meta` is not passed on. Guards never see the `_meta` of a task request, only that of the call that began the task;
   * for other methods, they see it only in a few.
   */
  function isMetaUnseen({ method }: RelayedRequest): boolean {
    if (method.startsWith('tasks/')) return true;
    const { guards } = served.current;
    if (guards === undefined || GUARDED.has(method)) return false;
    return GUARD_POINTS.every((point) => point !== method || guards.looksAt(point));
  }

  /** §29.5: the result of a finished task is the result of its call. */
  async function finishTask(
    server: string,
    who: Who,
    task: RawResult,
    era: Era,
  ): Promise<RawResult> {
    const request = { method: 'tools/call', params: {} } as const;
    const result = isObject(task.result) ? task.result : {};
    const text = cutJson(findText(task) ?? '', ['result']);
    if (text !== undefined) noteWritten(result, text);
    const members = editValue(result, 'resultType' in result ? [{ path: ['resultType'] }] : []);
    const fitting = fitResult(server, request, era, members);
    const finished = await renameUris(server, who, request, fitting);
    if (finished === members) return task;
    const rewrite = () => findText(finished) ?? JSON.stringify(finished);
    return editValue(task, [{ path: ['result'], rewrite }]);
  }

  /**
   * Makes a result readable for clients: a single part that MCP does not allow would make them reject all of it. Logs each change.
   *
   * @throws GatewayError `upstream_error` if the result cannot be made readable.
   */
  function fitResult(
    server: string,
    { method, name }: RelayedRequest,
    era: Era,
    given: RawResult,
  ): RawResult {
    const rules = RESULTS.get(method);
    // A task is not yet the result of a call.
    if (rules === undefined || given.resultType !== undefined) return given;
    const isWithoutContent = method === 'tools/call' && !Object.hasOwn(given, 'content');
    const result = isWithoutContent ? addMember(given, 'content', '[]') : given;
    // An unparsed result was checked as a tool's result, before its method was known.
    const read = READ[method];
    if (findUnread(result) && (read === undefined || Object.hasOwn(result, read.member)))
      return result;
    const found = new Findings();
    if (!rules[era](result, found)) return failAnswer(server, found.misfit ?? []);
    const [first] = found.list;
    if (first === undefined) return result;
    const { contents } = result;
    const leftOut = found.list.filter(
      ({ path: [member, ...behind] }) => member === 'contents' && behind.length === 1,
    );
    if (Array.isArray(contents) && contents.length > 0 && leftOut.length === contents.length)
      return failAnswer(server, first.path);
    for (const problem of new Set(found.list.map(describe)))
      served.current.warnOfResult(server, read?.list ?? 'tools', name, problem);
    return editResult(result, found.list);
  }

  /**
   * Rewrites references in a result to the names that its client knows. Most results refer to nothing, so there is nothing to wait
   * for.
   */
  function renameUris(
    server: string,
    who: Who,
    { name, clientUri }: RelayedRequest,
    result: RawResult,
  ): RawResult | Promise<RawResult> {
    const isMoved = clientUri !== undefined && clientUri !== name;
    const named = listNamedUris(result, !isMoved && findUnread(result) !== undefined);
    if (named.length === 0) return result;
    const isAsked = (uri: string): boolean => clientUri !== undefined && uri === name;
    const unknown = named.filter(({ uri }) => !isAsked(uri) && !isAppUri(uri));
    const toClientUri = (uri: string, moved: ReadonlySet<string>): string => {
      if (isMoved && isAsked(uri)) return clientUri;
      return moved.has(uri) ? toMovedUri(server, uri) : toSharedUri(server, uri);
    };
    const rename = (moved: ReadonlySet<string>): RawResult => {
      if (isOwn) return result;
      const edits = named.flatMap(({ path, uri }) => {
        const shown = toClientUri(uri, moved);
        return shown === uri ? [] : [{ path, rewrite: () => JSON.stringify(shown) }];
      });
      return editResult(result, edits);
    };
    return unknown.length === 0 ? rename(NONE_MOVED) : lookUp(server, unknown, who).then(rename);
  }

  /**
   * Resolves to the URIs that another server also has, so that clients see them as `<server>+<uri>`. Unlisted links are remembered.
   */
  async function lookUp(
    server: string,
    named: readonly NamedUri[],
    who: Who,
  ): Promise<ReadonlySet<string>> {
    const moved = new Set<string>();
    const linked = new Set(named.filter(({ isLink }) => isLink).map(({ uri }) => uri));
    const unlisted: string[] = [];
    for (const uri of [...new Set(named.map((one) => one.uri))].slice(0, MAX_LOOKED_UP)) {
      if (!isOwn && (await isAnothers(uri, server, who))) moved.add(uri);
      else if (linked.has(uri) && (await view.findListed(uri, who)) === undefined) {
        unlisted.push(uri);
      }
    }
    if (unlisted.length > 0) {
      const owner = nameLinkOwner(who.upstream, view.name);
      await links.remember(owner, server, unlisted.slice(0, MAX_LINKS));
    }
    return moved;
  }

  /** True if both servers list the URI, and the other server keeps it. */
  async function isAnothers(uri: string, server: string, who: Who): Promise<boolean> {
    const listed = await joined.findListed(uri, who);
    if (listed === undefined || listed.server === server) return false;
    const own = await joined.findListed(toMovedUri(server, uri), who);
    return own?.server === server && own.ownUri === uri;
  }
}

/** MCP "Resources", "Error Handling": fails with the URI as the client knows it. @throws always. */
function failAsAsked(thrown: unknown, { name, clientUri }: RelayedRequest): never {
  if (clientUri === undefined || clientUri === name || !(thrown instanceof GatewayError))
    throw thrown;
  const { jsonRpc } = thrown.failure;
  if (jsonRpc === undefined || !isObject(jsonRpc.data) || jsonRpc.data.uri !== name) throw thrown;
  const data = { ...jsonRpc.data, uri: clientUri };
  const { facts } = thrown.failure;
  return fail('upstream_error', {
    jsonRpc: { ...jsonRpc, data },
    ...(facts && { facts }),
    cause: thrown,
  });
}

/** For methods that call no tool: the list that contains the item, and the member that the result must have. */
const READ: Readonly<Record<string, { readonly list: ListKind; readonly member: string }>> = {
  'prompts/get': { list: 'prompts', member: 'messages' },
  'resources/read': { list: 'resources', member: 'contents' },
};

/** Methods whose `_meta` a guard sees. */
const GUARDED: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read']);

const NONE_MOVED: ReadonlySet<string> = new Set();

/** Called when the server was removed from the configuration after it was found. */
export const failGone = (server: string): never => failUpstream(`${server} is no longer there.`);

// §18.2, §30.1: the URIs in a server's result, with their paths: links, embedded resources, read contents, and apps. Texts and
// structured content stay as the server wrote them.

interface NamedUri {
  readonly path: JsonPath;
  readonly uri: string;
  /** True for a link or an embedded resource of a tool or prompt, which can be read even if it is not listed. */
  readonly isLink: boolean;
}

/** `appsOnly`: nothing else in the result names a URI. */
function listNamedUris(result: JsonObject, appsOnly: boolean): readonly NamedUri[] {
  const named: NamedUri[] = [];
  if (result._meta !== undefined) addApps(result, [], named);
  if (appsOnly) return named;
  const { content, messages, contents } = result;
  if (Array.isArray(content))
    for (let at = 0; at < content.length; at += 1) addContent(content[at], ['content', at], named);
  if (Array.isArray(messages))
    for (const [at, message] of messages.entries())
      if (isObject(message)) addContent(message.content, ['messages', at, 'content'], named);
  if (Array.isArray(contents))
    for (const [at, resource] of contents.entries())
      addResource(resource, ['contents', at], false, named);
  return named;
}

function addContent(item: unknown, path: JsonPath, named: NamedUri[]): void {
  if (!isObject(item)) return;
  if (item.type === 'resource_link') addResource(item, path, true, named);
  else if (item._meta !== undefined) addApps(item, path, named);
  if (item.type === 'resource') addResource(item.resource, [...path, 'resource'], true, named);
}

function addResource(item: unknown, path: JsonPath, isLink: boolean, named: NamedUri[]): void {
  if (!isObject(item)) return;
  const { uri } = item;
  if (typeof uri === 'string') named.push({ path: [...path, 'uri'], uri, isLink });
  addApps(item, path, named);
}

/** The apps that `_meta` names. */
function addApps({ _meta: meta }: JsonObject, path: JsonPath, named: NamedUri[]): void {
  for (const app of listAppUris(meta)) {
    named.push({ path: [...path, '_meta', ...app.path], uri: app.uri, isLink: false });
  }
}

/** Keeps the gateway's own cache hint, which is not part of the serialized result. */
function editResult(result: RawResult, edits: readonly ValueEdit[]): RawResult {
  if (edits.length === 0 || result.cache === undefined) return editValue(result, edits);
  const { cache, ...written } = result;
  const text = findText(result);
  if (text !== undefined) noteWritten(written, text);
  return Object.assign(editValue(written, edits), { cache });
}

const describe = ({ path, rewrite }: ValueEdit): string =>
  `answers with ${showPath(path)}, which MCP does not allow: ${rewrite === undefined ? 'it is left out' : 'it is passed on as text'}`;

/** Shows the path without positions: a mistake in one part usually occurs in others as well. */
const showPath = (path: JsonPath): string =>
  path.map((step) => (typeof step === 'number' ? '[]' : step)).join('.');

const failAnswer = (server: string, path: JsonPath): never =>
  failAtServer(
    server,
    `answered with what MCP does not allow: ${showPath(path)} is missing or malformed`,
  );
