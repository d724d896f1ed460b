// §2.4–§2.7: serves tools, prompts, resources and skills defined in this process.
import { DefinitionError, fail, failUnknown } from '../../../errors/gateway-error.ts';
import { findNearestName } from '../../../platform/nearest-name.ts';
import { stripUri } from '../../../platform/secret-texts.ts';
import { failNoDirectory, failUnknownItem } from '../../protocol/list-kinds.ts';
import {
  type Arguments,
  type Catalog,
  type Cursor,
  decodeCursor,
  encodeCursor,
  failUnknownCursor,
  type ListItems,
  type Page,
} from '../catalog.ts';
import { type CacheHint, listChildren, requireSkillRoot } from '../content.ts';
import { checkMembers, describeType } from './describe-errors.ts';
import type { Prompt } from './prompt.ts';
import type { Resource, ResourceTemplate } from './resource.ts';
import type { Skill } from './skill.ts';
import type { Tool } from './tool.ts';

export interface LocalEntries {
  readonly tools?: readonly Tool[];
  readonly prompts?: readonly Prompt[];
  readonly resources?: readonly Resource[];
  readonly resourceTemplates?: readonly ResourceTemplate[];
  /** Their files are served as resources. */
  readonly skills?: readonly Skill[];
  /** True if tools write to `context.log`: clients may then request log messages. */
  readonly logging?: boolean;
  /** Instructions for the client's model on how to use this service. */
  readonly instructions?: string;
  /** Entries per page of a list, 250 by default. Many clients only read one page. */
  readonly pageSize?: number;
}

const PAGE_SIZE = 250;

/** MCP, completion: at most 100 values per response. */
const MAX_COMPLETIONS = 100;

const MEMBERS = [
  ...['tools', 'prompts', 'resources', 'resourceTemplates', 'skills'],
  ...['logging', 'instructions', 'pageSize'],
];

/** @throws DefinitionError if two entries share a name or URI, or a member is unknown. */
export function createLocalCatalog(entries: LocalEntries): Catalog {
  checkMembers('createLocalCatalog', entries, MEMBERS);
  const { logging = false, instructions, pageSize = PAGE_SIZE } = entries;
  const tools = indexByName('tool', entries.tools, 'name');
  const prompts = indexByName('prompt', entries.prompts, 'name');
  const fixed = indexByName('resource', entries.resources, 'uri');
  const skills = indexByName('skill', entries.skills, 'uri');
  /** All files of skills. The resource list contains only each `SKILL.md`; other files are listed with the skill. */
  const files = indexFiles(skills, fixed);
  const templates = indexByName('resource template', entries.resourceTemplates, 'uriTemplate');
  const manifests = [...skills.keys()].flatMap((uri): readonly [string, Resource][] => {
    const file = files.get(uri);
    return file === undefined ? [] : [[uri, file]];
  });
  const listed = new Map([...fixed, ...manifests]);

  return {
    offers: {
      tools: tools.size > 0,
      prompts: prompts.size > 0,
      resources: fixed.size + templates.size + skills.size > 0,
      subscriptions: [...fixed.values()].some(({ watch }) => watch !== undefined),
      completions: [...prompts.values(), ...templates.values()].some(
        ({ hasCompletion }) => hasCompletion,
      ),
      logging,
      ...(skills.size > 0 && { skills: true, directories: true }),
      ...([...tools.values()].some(({ task }) => task !== undefined) && { tasks: true }),
    },
    ...(instructions !== undefined && { instructions }),

    mirrorHeaders: [...tools.values()].flatMap(({ mirroredParams }) =>
      mirroredParams.map(({ header }) => header),
    ),
    mirroredParams: (name) => tools.get(name)?.mirroredParams ?? [],

    listTools: createPager(tools, pageSize),
    async callTool(name, args, context) {
      const tool = tools.get(name) ?? failUnknownName('tool', name, tools);
      checkArguments(tool, args);
      return tool.run(args, context);
    },
    findTask(name) {
      const tool = tools.get(name);
      if (tool?.task === undefined) return undefined;
      return {
        isRequired: tool.task === 'required',
        async prepare(args, context) {
          checkArguments(tool, args);
          return tool.prepare(args, context);
        },
      };
    },

    listPrompts: createPager(prompts, pageSize),
    async getPrompt(name, args, context) {
      const prompt = prompts.get(name) ?? failUnknownName('prompt', name, prompts);
      const problem = prompt.findProblem(args);
      if (problem !== undefined) fail('invalid_params', { details: problem });
      return prompt.get(args, context);
    },

    // Fixed URIs come before templates.
    listResources: createPager(listed, pageSize),
    listResourceTemplates: createPager(templates, pageSize),
    async readResource(uri, context) {
      const resource = listed.get(uri) ?? files.get(uri);
      if (resource !== undefined) {
        const { description, cache, read } = resource;
        return {
          contents: [{ uri, mimeType: description.mimeType, ...(await read(context)) }],
          ...(cache && { cache }),
        };
      }
      for (const { match, read, description } of templates.values()) {
        const variables = match(uri);
        const content = variables && (await read(variables, context));
        if (!content) continue;
        const { mimeType } = description;
        return { contents: [{ uri, ...(mimeType !== undefined && { mimeType }), ...content }] };
      }
      // The name is also logged.
      return failUnknown({ noun: 'resource', name: stripUri(uri), data: { uri } });
    },

    canWatch: (uri) => listed.get(uri)?.watch !== undefined,
    watchResources(changed) {
      const stops: (() => void)[] = [];
      const stopAll = () => {
        for (const stop of stops) stop();
      };
      try {
        for (const [uri, { watch }] of listed) if (watch) stops.push(watch(() => changed(uri)));
      } catch (error) {
        stopAll();
        throw error;
      }
      return stopAll;
    },

    // SEP-2640: skills, and the directories of their files.
    listSkills: createPager(skills, pageSize),
    async getSkill(uri) {
      const skill = skills.get(uri);
      return skill === undefined
        ? failUnknownItem('skills', uri)
        : { skill: skill.description, cache: LIST_CACHE };
    },
    async readDirectory(uri, cursor, context) {
      // All directories of a skill, from its folder down.
      for (const { description: skill, files: own } of skills.values()) {
        const root = requireSkillRoot(skill.uri);
        if (uri !== root && !uri.startsWith(`${root}/`)) continue;
        const described = own.map(({ description }) => description);
        const children = listChildren(described, uri);
        if (children === undefined) continue;
        const byUri = new Map(children.map((description) => [description.uri, { description }]));
        return createPager(byUri, pageSize)(cursor, context);
      }
      return failNoDirectory(uri);
    },

    async complete({ ref, argument, known }, context) {
      const entry =
        ref.type === 'ref/prompt'
          ? (prompts.get(ref.name) ?? failUnknownName('prompt', ref.name, prompts))
          : (templates.get(ref.uri) ??
            failUnknown({ noun: 'resource template', name: stripUri(ref.uri) }));
      const complete = entry.completers.get(argument.name);
      const values = (await complete?.(argument.value, known, context)) ?? [];
      return {
        values: values.slice(0, MAX_COMPLETIONS),
        total: values.length,
        hasMore: values.length > MAX_COMPLETIONS,
      };
    },
  };
}

function checkArguments(tool: Tool, args: Arguments) {
  const problem = tool.findProblem(args);
  if (problem !== undefined) fail('invalid_tool_input', { details: problem });
}

/**
 * A skill may be inside another one; both then have the same files. @throws DefinitionError if two different items share a URI.
 */
function indexFiles(
  skills: ReadonlyMap<string, Skill>,
  resources: ReadonlyMap<string, Resource>,
): ReadonlyMap<string, Resource> {
  const files = new Map<string, Resource>();
  const digests = new Map<string, string>();
  for (const { description, files: own } of skills.values()) {
    for (const [index, file] of own.entries()) {
      const { uri } = file.description;
      const digest = description.resources[index]?.digest ?? '';
      if (resources.has(uri) || (digests.get(uri) ?? digest) !== digest)
        throw new DefinitionError(`There are two resources with the name ${uri}.`);
      digests.set(uri, digest);
      // The inner skill's own description of its SKILL.md takes precedence.
      if (uri === description.uri || !files.has(uri)) files.set(uri, file);
    }
  }
  return files;
}

/** Limits the comparison of long lists, which blocks other requests. */
const MAX_COMPARED = 1_000;

/** Suggests names: callers of a local catalogue may see all of it. */
const failUnknownName = (
  noun: string,
  name: string,
  entries: ReadonlyMap<string, unknown>,
): never => {
  const nearest = findNearestName(name, [...entries.keys()].slice(0, MAX_COMPARED));
  return failUnknown({ noun, name, nearest });
};

/**
 * Maps names to entries, in order.
 *
 * @throws DefinitionError if two share a name, or the input is not a list of entries.
 */
function indexByName<
  Key extends string,
  Entry extends { readonly description: Readonly<Record<Key, string>> },
>(kind: string, entries: readonly Entry[] = [], key: Key): ReadonlyMap<string, Entry> {
  if (!Array.isArray(entries))
    throw new DefinitionError(
      `createLocalCatalog: the ${kind}s are ${describeType(entries)}; they must be a list.`,
    );
  const byName = new Map<string, Entry>();
  for (const entry of entries) {
    if (typeof entry?.description !== 'object')
      throw new DefinitionError(
        `createLocalCatalog: a ${kind} in the list was not made by a define function.`,
      );
    const name = entry.description[key];
    if (byName.has(name))
      throw new DefinitionError(`There are two ${kind}s with the name ${name}.`);
    byName.set(name, entry);
  }
  return byName;
}

// MCP "Pagination": splits a list into pages.

/** The lists are the same for all callers, and change only with a deployment. */
const LIST_CACHE: CacheHint = { ttlMs: 60_000, scope: 'public' };

/** The cursor is the name after which the page begins: it stays valid across deployments that add entries. */
function createPager<Description>(
  entries: ReadonlyMap<string, { readonly description: Description }>,
  pageSize: number,
): ListItems<Description> {
  const names = [...entries.keys()];
  const descriptions = [...entries.values()].map(({ description }) => description);

  return Object.assign(listPage, { isFixed: true } as const);

  async function listPage(cursor: Cursor): Promise<Page<Description>> {
    const start = cursor === undefined ? 0 : names.indexOf(decodeCursor(cursor)) + 1;
    if (cursor !== undefined && start === 0) failUnknownCursor();
    const end = start + pageSize;
    const last = names[end - 1];
    return {
      items: descriptions.slice(start, end),
      ...(end < names.length && last !== undefined && { nextCursor: encodeCursor(last) }),
      cache: LIST_CACHE,
    };
  }
}
