// A result as clients can read it: one part that MCP does not allow would cost them all of it.
import { fail } from '../../errors/gateway-error.ts';
import type { RawResult } from '../../mcp/catalog/catalog.ts';
import { addMember, editValue, type ValueEdit } from '../../platform/edit-json.ts';
import { noteWritten } from '../../platform/json.ts';
import { findText } from '../../platform/noted-json.ts';
import type { JsonPath } from '../../platform/splice-json.ts';
import { type Finding, Findings } from '../../protocol/fit.ts';
import { RESULTS } from '../../protocol/mcp-fits.ts';
import type { Era } from '../../protocol/revisions.ts';
import { isUnread } from './unread-result.ts';

interface FittingResult {
  readonly result: RawResult;
  /** The change, as the rest of a sentence; the same for all results with the same mistake. */
  readonly problems: readonly string[];
}

const NO_PROBLEMS: readonly string[] = [];

/** `method` is that of the request. @throws GatewayError `upstream_error` where nothing can be made of it. */
export function fitResult(
  server: string,
  method: string,
  era: Era,
  given: RawResult,
): FittingResult {
  const rules = RESULTS.get(method);
  // A task is no result of a call yet.
  if (rules === undefined || given.resultType !== undefined) {
    return { result: given, problems: NO_PROBLEMS };
  }
  const isWithoutContent = method === 'tools/call' && !Object.hasOwn(given, 'content');
  const result = isWithoutContent ? addMember(given, 'content', '[]') : given;
  if (isUnread(result)) return { result, problems: NO_PROBLEMS };
  const found = new Findings();
  const isFitting = rules[era](result, found);
  if (!isFitting) return failAnswer(server, found.misfit ?? []);
  if (found.list.length === 0) return { result, problems: NO_PROBLEMS };
  const [first] = found.list;
  if (first !== undefined && isAllLeftOut(result.contents, found.list)) {
    return failAnswer(server, first.path);
  }
  return { result: editResult(result, found.list), problems: found.list.map(describe) };
}

/** With the gateway's own word of how long it may be kept, which was not written. */
export function editResult(result: RawResult, edits: readonly ValueEdit[]): RawResult {
  if (edits.length === 0 || result.cache === undefined) return editValue(result, edits);
  const { cache, ...written } = result;
  const text = findText(result);
  if (text !== undefined) noteWritten(written, text);
  return Object.assign(editValue(written, edits), { cache });
}

const isAllLeftOut = (contents: unknown, list: readonly Finding[]): boolean =>
  Array.isArray(contents) &&
  contents.length > 0 &&
  list.filter(({ path: [name, ...behind] }) => name === 'contents' && behind.length === 1)
    .length === contents.length;

const describe = ({ path, rewrite }: Finding): string =>
  `answers with ${showPath(path)}, which MCP does not allow: ${rewrite === undefined ? 'it is left out' : 'it goes on as text'}`;

/** Without positions: what is wrong with one part is wrong with others, too. */
const showPath = (path: JsonPath): string =>
  path.map((step) => (typeof step === 'number' ? '[]' : step)).join('.');

const failAnswer = (server: string, path: JsonPath): never =>
  fail('upstream_error', {
    jsonRpc: {
      code: -32603,
      message: `${server} answered with what MCP does not allow: ${showPath(path)} is missing, or has another form.`,
    },
    facts: { server },
  });
