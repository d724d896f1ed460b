// §2.7: resources, and templates of them.
import { DefinitionError } from '../../../errors/gateway-error.ts';
import { isObject } from '../../../platform/json.ts';
import type { Context } from '../catalog.ts';
import type { CacheHint, ResourceContent } from '../content.ts';
import type { ResourceDescription, ResourceTemplateDescription } from '../descriptions.ts';
import { checkMembers, describeType } from './check-members.ts';
import type { Complete, Completers } from './prompt.ts';
import { parseUriTemplate, type VariableIn } from './uri-template.ts';

/** Made by {@link defineResource}. */
export interface Resource {
  readonly description: ResourceDescription;
  readonly cache: CacheHint | undefined;
  read(context: Context): Promise<ResourceContent>;
  readonly watch: Watch | undefined;
}

/** Made by {@link defineResourceTemplate}. */
export interface ResourceTemplate {
  readonly description: ResourceTemplateDescription;
  /** The variables of a URI that follows the template. */
  match(uri: string): Readonly<Record<string, string>> | undefined;
  /** Undefined when there is no such resource. */
  read(
    variables: Readonly<Record<string, string>>,
    context: Context,
  ): Promise<ResourceContent | undefined>;
  readonly completers: Completers;
  /** Whether a variable has `complete`. */
  readonly hasCompletion: boolean;
}

/** Calls `changed` after each change until the returned function is called. Neither throws. */
export type Watch = (changed: () => void) => () => void;

/**
 * Defines a resource with a fixed URI (§2.7). With `watch`, clients may subscribe to it
 * (`MCP_STREAMS=true`). `cache` says how long clients may keep what was read, and for whom; nothing
 * said means not at all.
 *
 * @throws DefinitionError at once, when a member is missing or not known.
 */
export function defineResource(
  resource: ResourceDescription & {
    readonly cache?: CacheHint;
    readonly watch?: Watch;
    read(context: Context): ResourceContent | Promise<ResourceContent>;
  },
): Resource {
  checkMembers('Resource', resource, MEMBERS, 'uri');
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
 * Defines resources whose URIs follow a template (RFC 6570: `{name}` stands for one segment,
 * `{+name}` for several). `read` and `complete` have the variables that the template names. Values come
 * percent-decoded, from the caller: a path made of them must be checked. `read` returns `undefined` for
 * what it does not know: the caller is told that there is no such resource.
 *
 * @throws DefinitionError at once, when a member is missing or not known, or the template or a name
 * in `complete` not valid.
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
  checkMembers('Resource template', template, TEMPLATE_MEMBERS, 'uriTemplate');
  const { read, complete: completions = {}, ...description } = template;
  const { uriTemplate } = description;
  const { variables, match } = parseUriTemplate(uriTemplate);
  const completers = new Map<string, Complete>();
  for (const [name, complete] of Object.entries(completions)) {
    if (!variables.includes(name)) {
      throw new DefinitionError(
        `Resource template ${uriTemplate}: the template has no variable ${name}.`,
      );
    }
    if (complete !== undefined) completers.set(name, complete);
  }
  return {
    description,
    match,
    async read(values, context) {
      const content = await read(values, context);
      // Programs without types say null as well.
      return content == null
        ? undefined
        : checkContent(`Resource template ${uriTemplate}`, content);
    },
    completers,
    hasCompletion: completers.size > 0,
  };
}

const MEMBERS = {
  uri: 'text',
  name: 'text',
  title: 'any',
  description: 'any',
  icons: 'any',
  mimeType: 'any',
  size: 'any',
  annotations: 'any',
  cache: 'any',
  watch: 'any',
  read: 'function',
} as const;

const TEMPLATE_MEMBERS = {
  uriTemplate: 'text',
  name: 'text',
  title: 'any',
  description: 'any',
  icons: 'any',
  mimeType: 'any',
  annotations: 'any',
  complete: 'any',
  read: 'function',
} as const;

function checkContent(owner: string, content: ResourceContent): ResourceContent {
  const { text, blob }: { readonly text?: unknown; readonly blob?: unknown } = content ?? {};
  if (typeof text === 'string' || typeof blob === 'string') return content;
  const returned = isObject(content) ? 'an object without either' : describeType(content);
  throw new Error(`${owner}: read returned ${returned}; it must return { text } or { blob }`);
}

/** The template as the compiler sees it: what it matches has the variables that `read` asks for. */
interface UntypedTemplate extends ResourceTemplateDescription {
  readonly complete?: Readonly<Record<string, Complete | undefined>>;
  read(
    variables: Readonly<Record<string, string>>,
    context: Context,
  ): ResourceContent | undefined | Promise<ResourceContent | undefined>;
}
