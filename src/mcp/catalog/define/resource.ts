// §2.7: defines resources and resource templates.

import { DefinitionError } from '../../../errors/gateway-error.ts';
import { isObject } from '../../../platform/json.ts';
import type { Context } from '../catalog.ts';
import type {
  CacheHint,
  ResourceContent,
  ResourceDescription,
  ResourceTemplateDescription,
} from '../content.ts';
import { checkMembers, describeType } from './describe-errors.ts';
import type { Complete, Completers } from './prompt.ts';

/** Created by {@link defineResource}. */
export interface Resource {
  readonly description: ResourceDescription;
  readonly cache: CacheHint | undefined;
  read(context: Context): Promise<ResourceContent>;
  readonly watch: Watch | undefined;
}

/** Created by {@link defineResourceTemplate}. */
export interface ResourceTemplate {
  readonly description: ResourceTemplateDescription;
  /** The variables of a URI that matches the template; undefined for other URIs. */
  match(uri: string): Readonly<Record<string, string>> | undefined;
  /** Undefined if there is no such resource. */
  read(
    variables: Readonly<Record<string, string>>,
    context: Context,
  ): Promise<ResourceContent | undefined>;
  readonly completers: Completers;
  /** True if a variable has `complete`. */
  readonly hasCompletion: boolean;
}

/** Calls `changed` after each change until the returned function is called. Neither throws. */
export type Watch = (changed: () => void) => () => void;

/**
 * Defines a resource with a fixed URI (§2.7). With `watch`, clients may subscribe to it (`MCP_STREAMS=true`). `cache` says how
 * long clients may cache the content, and for whom; not at all by default.
 *
 * @throws DefinitionError immediately, if a member is missing or unknown.
 */
export function defineResource(
  resource: ResourceDescription & {
    readonly cache?: CacheHint;
    readonly watch?: Watch;
    read(context: Context): ResourceContent | Promise<ResourceContent>;
  },
): Resource {
  checkMembers('Resource', resource, MEMBERS, { uri: 'text', name: 'text', read: 'function' });
  const { read, watch, cache, ...description } = resource;
  const owner = `Resource ${resource.uri}`;
  return {
    description,
    cache,
    watch,
    read: async (context) => checkContent(owner, await read(context)),
  };
}

/**
 * Defines resources whose URIs match a template (RFC 6570: `{name}` matches one segment, `{+name}` several). `read` and
 * `complete` receive the template's variables. Values are percent-decoded, and come from the caller: validate any path built from
 * them. `read` returns `undefined` for an unknown resource; the caller then gets an error that says so.
 *
 * @throws DefinitionError immediately, if a member is missing or unknown, or the template or a name in `complete` is invalid.
 */
export function defineResourceTemplate<const Template extends string>(
  template: ResourceTemplateDescription & {
    readonly uriTemplate: Template;
    /** By variable. */
    readonly complete?: {
      readonly [Name in VariableIn<Template>]?: Complete<VariableIn<Template>>;
    };
    read(
      variables: { readonly [Name in VariableIn<Template>]: string },
      context: Context,
    ): ResourceContent | undefined | Promise<ResourceContent | undefined>;
  },
): ResourceTemplate;
export function defineResourceTemplate(template: UntypedTemplate): ResourceTemplate {
  checkMembers('Resource template', template, TEMPLATE_MEMBERS, {
    uriTemplate: 'text',
    name: 'text',
    read: 'function',
  });
  const { read, complete: completions = {}, ...description } = template;
  const { uriTemplate } = description;
  const { variables, match } = parseUriTemplate(uriTemplate);
  const completers = new Map<string, Complete>();
  for (const [name, complete] of Object.entries(completions)) {
    if (!variables.includes(name))
      throw new DefinitionError(
        `Resource template ${uriTemplate}: the template has no variable ${name}.`,
      );
    if (complete !== undefined) completers.set(name, complete);
  }
  return {
    description,
    match,
    async read(values, context) {
      const content = await read(values, context);
      // Untyped programs also return null.
      return content == null
        ? undefined
        : checkContent(`Resource template ${uriTemplate}`, content);
    },
    completers,
    hasCompletion: completers.size > 0,
  };
}

const DESCRIBED = ['name', 'title', 'description', 'icons', 'mimeType'];
const MEMBERS = ['uri', ...DESCRIBED, 'size', 'annotations', 'cache', 'watch', 'read'];
const TEMPLATE_MEMBERS = ['uriTemplate', ...DESCRIBED, 'annotations', 'complete', 'read'];

function checkContent(owner: string, content: ResourceContent): ResourceContent {
  const { text, blob }: { readonly text?: unknown; readonly blob?: unknown } = content ?? {};
  if (typeof text === 'string' || typeof blob === 'string') return content;
  const returned = isObject(content) ? 'an object without either' : describeType(content);
  throw new Error(`${owner}: read returned ${returned}; it must return { text } or { blob }`);
}

/** The template as the compiler sees it: a match has the variables that `read` expects. */
interface UntypedTemplate extends ResourceTemplateDescription {
  readonly complete?: Readonly<Record<string, Complete | undefined>>;
  read(
    variables: Readonly<Record<string, string>>,
    context: Context,
  ): ResourceContent | undefined | Promise<ResourceContent | undefined>;
}

// The subset of RFC 6570 that resource templates need: {name} matches within one segment, one {+name} also matches slashes.
// Matching searches for the literals between the variables, in linear time: the caller chooses the URI, and a regular expression
// with several variables could be made to run for minutes.

/** The names of the template's variables as a type: `service` and `path` for `x://{service}/{+path}`. */
type VariableIn<Template extends string> = string extends Template
  ? string
  : Template extends `${string}{${infer Expression}}${infer Rest}`
    ? (Expression extends `+${infer Name}` ? Name : Expression) | VariableIn<Rest>
    : never;

interface Variable {
  readonly name: string;
  /** `{+name}`: matches the remaining text, including slashes. */
  readonly isReserved: boolean;
}

/**
 * Parses the template into its variable names, in order, and a function that returns the variables of a URI: percent-decoded,
 * undefined if the URI does not match.
 *
 * @throws DefinitionError if the template has no variable, or an unsupported one.
 */
function parseUriTemplate(template: string) {
  const failTemplate = (reason: string): never => {
    throw new DefinitionError(`Resource template ${template}: ${reason}.`);
  };
  const parts = template.split(/(\{[^{}]*\})/);
  // Even indexes are literals, odd ones are variables.
  const texts = parts.filter((_part, index) => index % 2 === 0);
  const variables = parts
    .filter((_part, index) => index % 2 === 1)
    .map((part): Variable => {
      const [, plus, name] = /^\{(\+?)([A-Za-z_][A-Za-z0-9_]*)\}$/.exec(part) ?? [];
      if (name === undefined) return failTemplate(`${part} is not {name} or {+name}`);
      return { name, isReserved: plus === '+' };
    });
  const names = variables.map(({ name }) => name);
  if (names.length === 0) failTemplate('it has no variable');
  if (new Set(names).size < names.length) failTemplate('a variable appears twice');
  if (texts.some((text) => /[{}]/.test(text))) failTemplate('a brace is not matched');
  if (texts.slice(1, -1).includes('')) failTemplate('there must be text between two variables');
  if (variables.filter(({ isReserved }) => isReserved).length > 1)
    failTemplate('it may have only one {+name}');

  return {
    variables: names,
    match(uri: string): Readonly<Record<string, string>> | undefined {
      const values = matchValues(uri, texts, variables);
      try {
        return (
          values &&
          Object.fromEntries(
            names.map((name, index) => [name, decodeURIComponent(values[index] ?? '')]),
          )
        );
      } catch {
        return undefined;
      }
    },
  };
}

/** Matches from the left up to `{+name}`, and from the right down to it; each other variable is as short as possible. */
function matchValues(
  uri: string,
  texts: readonly string[],
  variables: readonly Variable[],
): readonly string[] | undefined {
  const prefix = texts[0] ?? '';
  const suffix = texts.at(-1) ?? '';
  let start = prefix.length;
  let end = uri.length - suffix.length;
  if (start >= end || !uri.startsWith(prefix) || !uri.endsWith(suffix)) return undefined;
  const left: string[] = [];
  const right: string[] = [];
  const reserved = variables.findIndex(({ isReserved }) => isReserved);
  const pivot = reserved === -1 ? variables.length - 1 : reserved;

  for (const text of texts.slice(1, pivot + 1)) {
    const position = uri.indexOf(text, start + 1);
    if (position === -1 || position >= end) return undefined;
    left.push(uri.slice(start, position));
    start = position + text.length;
  }
  for (const text of texts.slice(pivot + 1, -1).reverse()) {
    const position = uri.lastIndexOf(text, end - text.length - 1);
    if (position <= start) return undefined;
    right.unshift(uri.slice(position + text.length, end));
    end = position;
  }
  if (start >= end) return undefined;
  const values = [...left, uri.slice(start, end), ...right];
  return values.every((value, index) => index === reserved || !/[/?#]/.test(value))
    ? values
    : undefined;
}
