// §2.5–§2.7, MCP "Content": the types of results and list entries of tools, prompts, resources and skills.

import { decodePercent, isObject } from '../../platform/json.ts';

/** The audience and priority of a piece of content; clients may use them. */
export interface Annotations {
  readonly audience?: readonly ('user' | 'assistant')[];
  /** From 0 (optional) to 1 (required). */
  readonly priority?: number;
  /** ISO 8601. */
  readonly lastModified?: string;
}

/** An icon in a list of tools, prompts or resources; clients accept `https` and `data` URLs. */
export interface Icon {
  readonly src: string;
  readonly mimeType?: string;
  /** `48x48`, or `any` for a scalable image. */
  readonly sizes?: readonly string[];
  readonly theme?: 'light' | 'dark';
}

/** Text as is, bytes as base64. An embedded resource has `text` or `blob`: clients reject one without. */
export type Content = (
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image' | 'audio'; readonly data: string; readonly mimeType: string }
  | { readonly type: 'resource'; readonly resource: EmbeddedResource }
  | ResourceLink
) & { readonly annotations?: Annotations };

type EmbeddedResource = {
  readonly uri: string;
  readonly name?: string;
  readonly description?: string;
  readonly mimeType?: string;
} & ResourceContent;

/** The text of a resource, or its bytes as base64. */
export type ResourceContent = { readonly text: string } | { readonly blob: string };

/** A link to a resource, whether or not it is listed here. */
interface ResourceLink {
  readonly type: 'resource_link';
  readonly uri: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
  /** In bytes. */
  readonly size?: number;
  readonly icons?: readonly Icon[];
}

/** §2.5. */
export interface ToolResult {
  readonly content: readonly Content[];
  /** Valid for the tool's `outputSchema`. */
  readonly structuredContent?: Readonly<Record<string, unknown>>;
  /** True if the tool itself reports a failure. */
  readonly isError?: boolean;
}

/** §2.6. */
export interface PromptResult {
  readonly description?: string;
  readonly messages: readonly {
    readonly role: 'user' | 'assistant';
    readonly content: Content;
  }[];
}

/** §2.7. */
export interface ResourceResult {
  readonly contents: readonly ({
    readonly uri: string;
    readonly mimeType?: string;
  } & ResourceContent)[];
  /** How long clients may cache it, and for whom; private and not cached by default. */
  readonly cache?: CacheHint;
}

/** MCP 2026-07-28: `ttlMs` and `cacheScope`. */
export interface CacheHint {
  /** In milliseconds. */
  readonly ttlMs: number;
  /** `private` if the result depends on the user. */
  readonly scope: 'public' | 'private';
}

// MCP: kinds of content that a revision does not support are sent to its clients as text.

/** The revision that introduced audio. */
const AUDIO_SINCE = '2025-03-26';

/** The revision that introduced links; from it on, clients support all kinds. */
export const NEWEST_KINDS = '2025-06-18';

/** Converts the result for a client with a revision before `NEWEST_KINDS`. Revisions compare as text: they are dates. */
export function adaptContent(version: string, result: object): object {
  const { content, messages }: { content?: unknown; messages?: unknown } = result;
  if (Array.isArray(content))
    return { ...result, content: content.map((item: unknown) => adaptItem(version, item)) };
  if (!Array.isArray(messages)) return result;
  return {
    ...result,
    messages: messages.map((message: unknown) =>
      isObject(message) ? { ...message, content: adaptItem(version, message.content) } : message,
    ),
  };
}

/** Leaves anything other than MCP content unchanged: not every catalogue validates its results. */
function adaptItem(version: string, content: unknown): unknown {
  if (!isObject(content)) return content;
  const { type, uri, name, data, mimeType } = content;
  if (type === 'resource_link' && typeof uri === 'string' && typeof name === 'string')
    return version < NEWEST_KINDS ? { type: 'text', text: uri } : content;
  const isAudio = type === 'audio' && typeof data === 'string' && typeof mimeType === 'string';
  return isAudio && version < AUDIO_SINCE ? { type: 'text', text: `[${mimeType}]` } : content;
}

// §2.4, §2.6, §2.7: list entries of tools, prompts and resources.

/** Optional members of every list entry. */
export interface DescribedEntry {
  /** For people; the name is for programs. */
  readonly title?: string;
  readonly description: string;
  readonly icons?: readonly Icon[];
}

/** JSON Schema of a tool's arguments or structured result: always an object. */
export interface ObjectSchema extends Schema {
  readonly type: 'object';
  readonly additionalProperties?: boolean;
}

/** The part of JSON Schema that the compiler can check; all other keywords are allowed. */
interface Schema {
  readonly type?: TypeName | readonly TypeName[];
  readonly properties?: Readonly<Record<string, Schema | boolean>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema | boolean | readonly (Schema | boolean)[];
  readonly enum?: readonly unknown[];
  readonly allOf?: readonly (Schema | boolean)[];
  readonly anyOf?: readonly (Schema | boolean)[];
  readonly oneOf?: readonly (Schema | boolean)[];
  readonly not?: Schema | boolean;
  readonly [keyword: string]: unknown;
}

type TypeName = 'object' | 'array' | 'string' | 'number' | 'integer' | 'boolean' | 'null';

/** The effects of a tool: hints for the client's user interface, without guarantees. */
export interface ToolAnnotations {
  readonly title?: string;
  readonly readOnlyHint?: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint?: boolean;
}

/** §2.4. */
export interface ToolDescription extends DescribedEntry {
  readonly name: string;
  readonly inputSchema: ObjectSchema;
  readonly outputSchema?: ObjectSchema;
  readonly annotations?: ToolAnnotations;
}

/** An argument of a tool that clients mirror in a header (MCP 2026-07-28 "x-mcp-header"). */
export interface MirroredParam {
  /** The header's name, such as `Mcp-Param-Region`. */
  readonly header: string;
  /** The path of members from the arguments to it. */
  readonly path: readonly string[];
}

/** §2.6. */
export interface PromptDescription extends DescribedEntry {
  readonly name: string;
  readonly arguments: readonly {
    readonly name: string;
    readonly description: string;
    readonly required: boolean;
  }[];
}

/** §2.7. */
export interface ResourceDescription extends DescribedEntry {
  readonly uri: string;
  readonly name: string;
  readonly mimeType: string;
  /** In bytes. */
  readonly size?: number;
  readonly annotations?: Annotations;
}

/** SEP-2640: instructions for agents, in a folder of resources. */
export interface SkillDescription {
  /** The URI of its `SKILL.md`. */
  readonly uri: string;
  /** The frontmatter of its `SKILL.md`, as the author wrote it. */
  readonly frontmatter: SkillFrontmatter;
  /** All of its files, including `SKILL.md`; `dynamic` if they are generated on every request. */
  readonly resources: readonly SkillFile[] | 'dynamic';
}

export interface SkillFrontmatter {
  readonly name: string;
  readonly description: string;
  readonly [member: string]: unknown;
}

export interface SkillFile {
  readonly uri: string;
  /** `sha256:` and 64 lower-case hexadecimal digits, the hash of the file's bytes. */
  readonly digest: string;
  /** In bytes. */
  readonly size: number;
}

/** Resources whose URIs follow a pattern (RFC 6570). */
export interface ResourceTemplateDescription extends DescribedEntry {
  readonly uriTemplate: string;
  readonly name: string;
  readonly mimeType?: string;
  readonly annotations?: Annotations;
}

// SEP-2640: the directories of skills, derived from the URIs of their files.

/** The MIME type of a directory. */
export const DIRECTORY = 'inode/directory';

const MANIFEST = '/SKILL.md';

/** The folder of the skill, without a trailing slash; undefined if the URI is not that of a `SKILL.md`. */
export function findSkillRoot(uri: string): string | undefined {
  return uri.endsWith(MANIFEST) ? uri.slice(0, -MANIFEST.length) : undefined;
}

/** The same for the URI of a skill, which always ends in `SKILL.md`. */
export const requireSkillRoot = (uri: string): string => uri.slice(0, -MANIFEST.length);

/** Maximum depth of a skill's folder, by the slashes in its URI: each level costs time, and strangers choose the URI. */
export const MAX_DIRECTORIES = 32;

/** The directories that contain a URI, from the outermost one: at most as many as a skill's folder may have. */
export function listDirectories(uri: string): readonly string[] {
  const directories: string[] = [];
  for (
    let end = uri.indexOf('/');
    end !== -1 && directories.length < MAX_DIRECTORIES;
    end = uri.indexOf('/', end + 1)
  ) {
    directories.push(uri.slice(0, end));
  }
  return directories;
}

/** The known description of a file or directory. */
type Child = Pick<ResourceDescription, 'uri' | 'name' | 'mimeType'>;

/** Lists the direct contents of the directory, in the order of the files; undefined if no file is in or below it. */
export function listChildren<File extends { readonly uri: string }>(
  files: readonly File[],
  directory: string,
): readonly (File | Child)[] | undefined {
  const start = `${directory}/`;
  const children = new Map<string, File | Child>();
  for (const file of files) {
    if (!file.uri.startsWith(start)) continue;
    const [name = '', ...below] = file.uri.slice(start.length).split('/');
    const uri = start + name;
    if (below.length === 0) children.set(uri, file);
    else if (!children.has(uri))
      children.set(uri, { uri, name: decodeName(name), mimeType: DIRECTORY });
  }
  return children.size === 0 ? undefined : [...children.values()];
}

/** True if the segment names something in its directory, also for a client that stores the file on a disk. */
export function isPlainName(segment: string): boolean {
  const name = decodeName(segment);
  return !['', '.', '..'].includes(name) && !/[/\\\0]/.test(name);
}

/** The decoded form, for people. */
export const decodeName = (segment: string): string => decodePercent(segment) ?? segment;
