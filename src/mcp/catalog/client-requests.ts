// MCP "Elicitation", "Sampling", "Roots": server-initiated requests to a client, and its responses.

import type { FromSchema, JSONSchema } from 'json-schema-to-ts';
import type { JsonObject } from '../../platform/json.ts';
import { isDeclared, readClientExtensions } from '../protocol/revisions.ts';
import type { Content } from './content.ts';

/** One request to the client; created by {@link elicit}, {@link sample} and {@link listRoots}. */
export type ClientRequest = ElicitRequest | SampleRequest | RootsRequest;

/** Asks the user to fill in a form. */
export interface ElicitRequest<Schema extends FormSchema = FormSchema> {
  readonly method: 'elicitation/create';
  readonly params: { readonly message: string; readonly requestedSchema: Schema };
}

/** Asks the client's model to complete a conversation. */
interface SampleRequest {
  readonly method: 'sampling/createMessage';
  readonly params: SampleParams;
}

/** Asks for the folders or URIs that the client works on. */
interface RootsRequest {
  readonly method: 'roots/list';
  readonly params: Readonly<Record<string, never>>;
}

/** A flat object: its properties are strings, numbers, booleans, choices or lists of choices. */
interface FormSchema {
  readonly type: 'object';
  readonly properties: Readonly<Record<string, unknown>>;
  readonly required?: readonly string[];
}

export interface SampleParams {
  readonly messages: readonly {
    readonly role: 'user' | 'assistant';
    readonly content: Extract<Content, { type: 'text' | 'image' | 'audio' }>;
  }[];
  readonly maxTokens: number;
  readonly systemPrompt?: string;
  readonly temperature?: number;
  readonly stopSequences?: readonly string[];
  readonly modelPreferences?: {
    readonly hints?: readonly { readonly name: string }[];
    readonly costPriority?: number;
    readonly speedPriority?: number;
    readonly intelligencePriority?: number;
  };
}

/** The user's action on the form; `content` is valid for its schema. */
export type ElicitAnswer<Fields = Readonly<Record<string, unknown>>> =
  | { readonly action: 'accept'; readonly content: Fields }
  | { readonly action: 'decline' | 'cancel' };

export interface SampleAnswer {
  readonly role: 'user' | 'assistant';
  /** One block, or several if the client sends several. */
  readonly content: unknown;
  readonly model: string;
  readonly stopReason?: string;
}

export interface RootsAnswer {
  readonly roots: readonly { readonly uri: string; readonly name?: string }[];
}

/** The response to a request, by the request's type. */
export type AnswerTo<Request> =
  Request extends ElicitRequest<infer Schema>
    ? ElicitAnswer<FromJsonSchema<Schema>>
    : Request extends SampleRequest
      ? SampleAnswer
      : RootsAnswer;

/** Requests by keys that the author chooses. */
export type ClientRequests = Readonly<Record<string, ClientRequest>>;

export type Answers<Requests extends ClientRequests> = {
  readonly [Key in keyof Requests]: AnswerTo<Requests[Key]>;
};

/**
 * Sends all requests to the client at the same time, and resolves to the responses under the same keys.
 *
 * Keys are unique within a call: in the stateless era, the tool runs again from its start when the responses have arrived, and
 * finds them by key. So put side effects that must happen only once after the request.
 *
 * @throws GatewayError if the client did not declare support, cannot be reached, does not respond in time, or responds with
 * invalid data. The error does not have to be caught.
 */
export type Ask = <const Requests extends ClientRequests>(
  requests: Requests,
) => Promise<Answers<Requests>>;

/** The server-initiated requests that a client supports, as it declared. */
export interface ClientCapabilities {
  /** With a form. */
  readonly elicitation: boolean;
  /** With a URL that the user opens (2025-11-25). */
  readonly elicitationUrl?: boolean;
  readonly sampling: boolean;
  /** Sampling where the model may call the requester's tools (2025-11-25). */
  readonly samplingTools?: boolean;
  readonly roots: boolean;
  /** The settings that the client declares, by extension; undefined if it declared none that the gateway knows. */
  readonly extensions?: Readonly<Record<string, JsonObject>>;
}

/** Of a client that cannot be asked. */
export const NO_CAPABILITIES: ClientCapabilities = {
  elicitation: false,
  sampling: false,
  roots: false,
};

/** The methods of all server-initiated requests, with the capability of each, which also names guard points. */
export const QUESTIONS = {
  'elicitation/create': 'elicitation',
  'sampling/createMessage': 'sampling',
  'roots/list': 'roots',
} as const satisfies Record<ClientRequest['method'], keyof ClientCapabilities>;

export const isQuestionMethod = (method: string): method is ClientRequest['method'] =>
  Object.hasOwn(QUESTIONS, method);

/** Lists what the requests need but the client did not declare: capabilities, or unknown methods. */
export const findMissingCapabilities = (
  requests: Readonly<Record<string, { readonly method: string; readonly params: object }>>,
  declared: ClientCapabilities,
): readonly string[] => [
  ...new Set(
    Object.values(requests).flatMap(({ method, params }) => {
      if (!isQuestionMethod(method)) return [method];
      const isByUrl = method === 'elicitation/create' && 'mode' in params && params.mode === 'url';
      const needed = isByUrl ? 'elicitationUrl' : QUESTIONS[method];
      return declared[needed] === true ? [] : [needed];
    }),
  ),
];

/** Selects the entries whose keys `keys` has. */
export const pick = <Value>(from: Readonly<Record<string, Value>>, keys: object) =>
  Object.fromEntries(Object.entries(from).filter(([key]) => Object.hasOwn(keys, key)));

/** Selects the entries whose keys `keys` does not have. */
export const omit = <Value>(from: Readonly<Record<string, Value>>, keys: object) =>
  Object.fromEntries(Object.entries(from).filter(([key]) => !Object.hasOwn(keys, key)));

export const isEmpty = (value: object): boolean => Object.keys(value).length === 0;

/** Reads `capabilities` from `initialize`, or from a stateless request. */
export function readCapabilities(declared: JsonObject): ClientCapabilities {
  const extensions = readClientExtensions(declared.extensions);
  const { elicitation, sampling } = declared;
  const hasUrls = isDeclared(elicitation) && 'url' in elicitation;
  return {
    // Forms are the default, unless the client only declares another mode (2025-11-25, `url`).
    elicitation: isDeclared(elicitation) && ('form' in elicitation || !hasUrls),
    ...(hasUrls && { elicitationUrl: true }),
    sampling: isDeclared(sampling),
    ...(isDeclared(sampling) && 'tools' in sampling && { samplingTools: true }),
    roots: isDeclared(declared.roots),
    ...(extensions && { extensions }),
  };
}

/** A form for the user. `requestedSchema` is a flat object of primitives (MCP, elicitation). */
export const elicit = <const Schema extends FormSchema>(
  message: string,
  requestedSchema: Schema,
): ElicitRequest<Schema> => ({
  method: 'elicitation/create',
  params: { message, requestedSchema },
});

/** A completion by the client's model. Deprecated in 2026-07-28, but still supported. */
export const sample = (params: SampleParams): SampleRequest => ({
  method: 'sampling/createMessage',
  params,
});

/** The client's roots. Deprecated in 2026-07-28, but still supported. */
export const listRoots = (): RootsRequest => ({ method: 'roots/list', params: {} });

/**
 * The type of values that are valid for a schema; `never` if it is not a JSON Schema. A member with a `default` may still be
 * missing: defaults are not filled in.
 */
export type FromJsonSchema<Schema> = Schema extends JSONSchema
  ? FromSchema<Schema, { keepDefaultedPropertiesOptional: true }>
  : never;
