// The published JSON schemas of the MCP revisions. They are not ours to copy: the conformance tool
// carries them within its one file, and they are cut out of it there.
import { readFile, realpath } from 'node:fs/promises';
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { ConformanceTool } from '../tools/conformance.ts';
import { type Definition, findPublishedSchemas, type Published } from './published-schemas.ts';

/** Every list is empty if nothing is wrong; else `<definition>/<member>: <what is wrong>`. */
export interface McpSchemas {
  /** @throws for a revision or a definition that does not exist: a mistake of the test. */
  problems(revision: string, definition: string, value: unknown): readonly string[];
  /** The whole answer to a client's request of `method`: its envelope, and the result or error. */
  responseProblems(revision: string, method: string, message: unknown): readonly string[];
  /** A notification, or a request, that the server sends. */
  messageProblems(revision: string, message: unknown): readonly string[];
}

interface Revision {
  readonly definitions: Readonly<Record<string, Definition>>;
  readonly check: (definition: string, value: unknown) => readonly string[];
}

const RESULTS: Readonly<Record<string, string>> = {
  initialize: 'InitializeResult',
  ping: 'EmptyResult',
  'server/discover': 'DiscoverResult',
  'tools/list': 'ListToolsResult',
  'tools/call': 'CallToolResult',
  'prompts/list': 'ListPromptsResult',
  'prompts/get': 'GetPromptResult',
  'resources/list': 'ListResourcesResult',
  'resources/templates/list': 'ListResourceTemplatesResult',
  'resources/read': 'ReadResourceResult',
  'resources/subscribe': 'EmptyResult',
  'resources/unsubscribe': 'EmptyResult',
  'subscriptions/listen': 'SubscriptionsListenResult',
  'completion/complete': 'CompleteResult',
  'logging/setLevel': 'EmptyResult',
};
const MAY_ASK_FOR_INPUT: readonly string[] = ['tools/call', 'prompts/get', 'resources/read'];

export async function loadMcpSchemas({ script }: ConformanceTool): Promise<McpSchemas> {
  const source = await readFile(await realpath(script), 'utf8');
  const revisions = new Map<string, Revision>();
  for (const [name, published] of findPublishedSchemas(source))
    revisions.set(name, compile(published));

  function revisionOf(name: string): Revision {
    const revision = revisions.get(name);
    if (revision) return revision;
    const known = [...revisions.keys()].join(', ');
    throw new Error(
      name === '2024-11-05'
        ? `The conformance tool carries no schema of 2024-11-05, only of ${known}.`
        : `There is no MCP revision ${name}. The known ones are ${known}.`,
    );
  }

  function problems(name: string, definition: string, value: unknown): readonly string[] {
    const { definitions, check } = revisionOf(name);
    if (!definitions[definition]) throw new Error(`MCP ${name} defines no ${definition}.`);
    return check(definition, value);
  }

  function responseProblems(name: string, method: string, message: unknown): readonly string[] {
    const { definitions, check } = revisionOf(name);
    if (!isObject(message)) return ['A response is an object.'];
    if ('result' in message === 'error' in message)
      return ['A response has either a result or an error.'];
    if ('error' in message) {
      const envelope = firstOf(definitions, 'JSONRPCErrorResponse', 'JSONRPCError');
      const ofItsCode = errorOf(definitions, message.error);
      return [envelope, ...ofItsCode].flatMap((definition) => check(definition, message));
    }
    const envelope = firstOf(definitions, 'JSONRPCResultResponse', 'JSONRPCResponse');
    return [
      ...check(envelope, message),
      ...resultProblems(name, revisionOf(name), method, message.result),
    ];
  }

  function messageProblems(name: string, message: unknown): readonly string[] {
    const { definitions, check } = revisionOf(name);
    if (!isObject(message)) return ['A message is an object.'];
    const kind = 'id' in message ? 'Request' : 'Notification';
    const definition = membersOf(definitions, `Server${kind}`).get(message.method);
    return definition === undefined
      ? [`In MCP ${name} no server sends the ${kind.toLowerCase()} ${message.method}.`]
      : [`JSONRPC${kind}`, definition].flatMap((each) => check(each, message));
  }

  return { problems, responseProblems, messageProblems };
}

function resultProblems(
  name: string,
  { definitions, check }: Revision,
  method: string,
  result: unknown,
): readonly string[] {
  if (!membersOf(definitions, 'ClientRequest').has(method))
    return [`MCP ${name} has no method ${method}, and so no result of it.`];
  const definition = RESULTS[method];
  if (!definition) throw new Error(`Which definition is a result of ${method}? Add it here.`);
  const isStateless = 'InputRequiredResult' in definitions;
  const type = isStateless && isObject(result) ? result.resultType : undefined;
  if (type === 'input_required')
    return MAY_ASK_FOR_INPUT.includes(method)
      ? check('InputRequiredResult', result)
      : [`${definition}/resultType: ${method} must not ask for input`];
  // The schema takes any string, for the extensions' sake. We speak none.
  const isKnownType = type === undefined || type === 'complete';
  return [
    ...(isKnownType ? [] : [`${definition}/resultType: neither complete nor input_required`]),
    ...check(definition, result),
  ];
}

/** By method, the definitions that a union like `ServerRequest` names; none if it is not there. */
function membersOf(definitions: Revision['definitions'], union: string): Map<unknown, string> {
  return new Map(
    (definitions[union]?.anyOf ?? []).map(({ $ref = '' }) => {
      const name = $ref.slice($ref.lastIndexOf('/') + 1);
      return [definitions[name]?.properties?.method?.const, name];
    }),
  );
}

/** What a revision says about errors of this code in particular. */
function errorOf(definitions: Revision['definitions'], error: unknown): readonly string[] {
  const code = isObject(error) && typeof error.code === 'number' ? error.code : undefined;
  if (code === undefined) return [];
  return Object.keys(definitions).filter((name) =>
    definitions[name]?.properties?.error?.allOf?.some(
      ({ properties }) => properties?.code?.const === code,
    ),
  );
}

function firstOf(definitions: Revision['definitions'], ...names: readonly string[]): string {
  const name = names.find((each) => each in definitions);
  if (!name) throw new Error(`None of these is defined: ${names.join(', ')}.`);
  return name;
}

function compile(published: Published): Revision {
  const options = { strict: false, validateFormats: false, allErrors: true };
  const isDraft7 = published.definitions !== undefined;
  const ajv = isDraft7 ? new Ajv(options) : new Ajv2020(options);
  const { definitions = {}, $defs = definitions } = published;
  ajv.addSchema(published, 'mcp');
  const validators = new Map<string, ValidateFunction>();

  function validatorOf(definition: string): ValidateFunction {
    const known = validators.get(definition);
    if (known) return known;
    const $ref = `mcp#/${isDraft7 ? 'definitions' : '$defs'}/${definition}`;
    const validator = ajv.compile({ $ref });
    validators.set(definition, validator);
    return validator;
  }

  function check(definition: string, value: unknown): readonly string[] {
    const validate = validatorOf(definition);
    return validate(value)
      ? []
      : (validate.errors ?? []).map((error) => describeError(definition, error));
  }

  return { definitions: $defs, check };
}

function describeError(
  definition: string,
  { instancePath, message, keyword, params }: ErrorObject,
): string {
  const detail = keyword === 'const' || keyword === 'enum' ? ` ${JSON.stringify(params)}` : '';
  return `${definition}${instancePath}: ${message ?? 'is invalid'}${detail}`;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
