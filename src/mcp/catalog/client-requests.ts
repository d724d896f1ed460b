// MCP "Elicitation", "Sampling", "Roots": what a server may ask of a client, and its answers.

import type { FromSchema, JSONSchema } from 'json-schema-to-ts';
import type { JsonObject } from '../../platform/json.ts';
import { type ClientExtensions, isDeclared, readClientExtensions } from '../protocol/revisions.ts';
import type { Content } from './content.ts';

/** One question to the client; made by {@link elicit}, {@link sample} and {@link listRoots}. */
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

/** The user's action on the form; `content` fits its schema. */
export type ElicitAnswer<Fields = Readonly<Record<string, unknown>>> =
  | { readonly action: 'accept'; readonly content: Fields }
  | { readonly action: 'decline' | 'cancel' };

export interface SampleAnswer {
  readonly role: 'user' | 'assistant';
  /** One block, or several where the client answers so. */
  readonly content: unknown;
  readonly model: string;
  readonly stopReason?: string;
}

export interface RootsAnswer {
  readonly roots: readonly { readonly uri: string; readonly name?: string }[];
}

/** The answer to a request, by its type. */
export type AnswerTo<Request> =
  Request extends ElicitRequest<infer Schema>
    ? ElicitAnswer<FromJsonSchema<Schema>>
    : Request extends SampleRequest
      ? SampleAnswer
      : RootsAnswer;

/** Questions by keys of the author's own. */
export type ClientRequests = Readonly<Record<string, ClientRequest>>;

export type Answers<Requests extends ClientRequests> = {
  readonly [Key in keyof Requests]: AnswerTo<Requests[Key]>;
};

/**
 * Asks the client, all at once, and resolves to the answers under the same keys.
 *
 * Keys are unique within a call: in the stateless era the tool runs again from its start when the
 * answers have come, and finds them by key. So put what must happen only once after the question.
 *
 * @throws GatewayError when the client did not declare that it can answer, cannot be reached, does
 * not answer in time, or answers what does not fit. What is thrown may be left alone.
 */
export type Ask = <const Requests extends ClientRequests>(
  requests: Requests,
) => Promise<Answers<Requests>>;

/** Which questions a client can answer, as it declared. */
export interface ClientCapabilities {
  /** Through a form. */
  readonly elicitation: boolean;
  /** Through a URL that the user opens (2025-11-25). */
  readonly elicitationUrl?: boolean;
  readonly sampling: boolean;
  /** In which its model may call tools of the one that asks (2025-11-25). */
  readonly samplingTools?: boolean;
  readonly roots: boolean;
  /** Undefined where it declared none that the gateway knows. */
  readonly extensions?: ClientExtensions;
}

/** The methods of all questions, and of each its capability, by which guards name their points, too. */
export const QUESTIONS = {
  'elicitation/create': 'elicitation',
  'sampling/createMessage': 'sampling',
  'roots/list': 'roots',
} as const satisfies Record<ClientRequest['method'], keyof ClientCapabilities>;

export const isQuestionMethod = (method: string): method is ClientRequest['method'] =>
  Object.hasOwn(QUESTIONS, method);

/** Lists what the requests need, and the client did not declare: capabilities, or methods that are no question. */
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

/** Of questions, or of the answers to them: those whose keys the other has. */
export const pick = <Value>(from: Readonly<Record<string, Value>>, keys: object) =>
  Object.fromEntries(Object.entries(from).filter(([key]) => Object.hasOwn(keys, key)));

/** Those whose keys it has not. */
export const omit = <Value>(from: Readonly<Record<string, Value>>, keys: object) =>
  Object.fromEntries(Object.entries(from).filter(([key]) => !Object.hasOwn(keys, key)));

export const isEmpty = (value: object): boolean => Object.keys(value).length === 0;

/** Reads `capabilities` of `initialize`, or of a stateless request. */
export function readCapabilities(declared: JsonObject): ClientCapabilities {
  const extensions = readClientExtensions(declared.extensions);
  const { elicitation, sampling } = declared;
  const hasUrls = isDeclared(elicitation) && 'url' in elicitation;
  return {
    // Forms are the default; a client may name other ways only (2025-11-25, `url`).
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

/** A completion by the client's model. Deprecated in 2026-07-28, served all the same. */
export const sample = (params: SampleParams): SampleRequest => ({
  method: 'sampling/createMessage',
  params,
});

/** The client's roots. Deprecated in 2026-07-28, served all the same. */
export const listRoots = (): RootsRequest => ({ method: 'roots/list', params: {} });

/**
 * The type of what fits a schema; never, when it is no JSON Schema. A member with a `default` may be
 * missing all the same: nothing is filled in.
 */
export type FromJsonSchema<Schema> = Schema extends JSONSchema
  ? FromSchema<Schema, { keepDefaultedPropertiesOptional: true }>
  : never;
