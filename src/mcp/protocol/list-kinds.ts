import { failUnknown } from '../../errors/gateway-error.ts';
import type { JsonObject } from '../../platform/json.ts';
import { stripUri } from '../../platform/secret-texts.ts';

// MCP: the lists of a server and their items.

export const LIST_NAMES = ['tools', 'prompts', 'resources'] as const;

/** In `notifications/<list>/list_changed`, and among capabilities. */
export type ListName = (typeof LIST_NAMES)[number];

/** The kind of an item in rules, the lock and the audit log. */
export type ItemKind = 'tool' | 'prompt' | 'resource';

export const ALL_KINDS = ['tools', 'prompts', 'resources', 'templates', 'skills'] as const;

export type ListKind = (typeof ALL_KINDS)[number];

/** One value for each kind. */
export const forEachKind = <Value>(
  create: (kind: ListKind) => Value,
): Readonly<Record<ListKind, Value>> => ({
  tools: create('tools'),
  prompts: create('prompts'),
  resources: create('resources'),
  templates: create('templates'),
  skills: create('skills'),
});

interface ListKindRow {
  readonly method: string;
  /** The member of the result with the items. */
  readonly member: string;
  /** The member that identifies an item. */
  readonly key: 'name' | 'uri' | 'uriTemplate';
  /** In `notifications/<list>/list_changed`, and among the server's capabilities. */
  readonly list: ListName;
  readonly ruled: ItemKind;
  /** In messages. */
  readonly noun: string;
}

export const LIST_KINDS = {
  tools: {
    method: 'tools/list',
    member: 'tools',
    key: 'name',
    list: 'tools',
    ruled: 'tool',
    noun: 'tool',
  },
  prompts: {
    method: 'prompts/list',
    member: 'prompts',
    key: 'name',
    list: 'prompts',
    ruled: 'prompt',
    noun: 'prompt',
  },
  resources: {
    method: 'resources/list',
    member: 'resources',
    key: 'uri',
    list: 'resources',
    ruled: 'resource',
    noun: 'resource',
  },
  templates: {
    method: 'resources/templates/list',
    member: 'resourceTemplates',
    key: 'uriTemplate',
    list: 'resources',
    ruled: 'resource',
    noun: 'resource template',
  },
  // SEP-2640: each is a folder of resources; changes are announced with the list of resources.
  skills: {
    method: 'skills/list',
    member: 'skills',
    key: 'uri',
    list: 'resources',
    ruled: 'resource',
    noun: 'skill',
  },
} as const satisfies Readonly<Record<ListKind, ListKindRow>>;

/**
 * `nearest` is a similar name that this caller sees; `facts` are for the log only. Denied and unknown items look the same to the
 * caller.
 *
 * @throws GatewayError `invalid_params`.
 */
export function failUnknownItem(
  list: ListKind,
  name: string,
  { nearest, facts }: { readonly nearest?: string | undefined; readonly facts?: JsonObject } = {},
): never {
  const { ruled, noun } = LIST_KINDS[list];
  return failUnknown({
    noun,
    name: ruled === 'resource' ? stripUri(name) : name,
    nearest,
    ...(facts && { facts }),
    ...((list === 'resources' || list === 'skills') && { data: { uri: name } }),
  });
}

/** SEP-2640: an unknown directory, or a resource that is not a directory. @throws GatewayError `invalid_params`. */
export const failNoDirectory = (uri: string, facts?: JsonObject): never =>
  failUnknown({ noun: 'directory', name: stripUri(uri), data: { uri }, ...(facts && { facts }) });
