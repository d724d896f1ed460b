// §2.5–§2.7, MCP "Content": what tools, prompts and resources answer with.

import { isObject } from '../../platform/json.ts';

/** For whom a piece of content is, and how much it matters; clients may heed it. */
export interface Annotations {
  readonly audience?: readonly ('user' | 'assistant')[];
  /** From 0 (may be left out) to 1 (must be shown). */
  readonly priority?: number;
  /** ISO 8601. */
  readonly lastModified?: string;
}

/** A picture for a list of tools, prompts or resources; clients take `https` and `data` URLs. */
export interface Icon {
  readonly src: string;
  readonly mimeType?: string;
  /** `48x48`, or `any` for what scales. */
  readonly sizes?: readonly string[];
  readonly theme?: 'light' | 'dark';
}

/** Text as it is, bytes as base64. An embedded resource carries `text` or `blob`: clients reject one without. */
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

/** Points to a resource, be it listed here or not. */
interface ResourceLink {
  readonly type: 'resource_link';
  readonly uri: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
  /** Bytes. */
  readonly size?: number;
  readonly icons?: readonly Icon[];
}

/** §2.5. */
export interface ToolResult {
  readonly content: readonly Content[];
  /** Fits the tool's `outputSchema`. */
  readonly structuredContent?: Readonly<Record<string, unknown>>;
  /** True when the tool itself reports a failure. */
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
  /** Says how long clients may keep it, and for whom; the default is not cached, private. */
  readonly cache?: CacheHint;
}

/** MCP 2026-07-28: `ttlMs` and `cacheScope`. */
export interface CacheHint {
  /** Milliseconds. */
  readonly ttlMs: number;
  /** `private` for all that depends on the user. */
  readonly scope: 'public' | 'private';
}

// MCP: kinds of content that a revision does not have reach its clients as text.

/** The revision that brought audio. */
const AUDIO_SINCE = '2025-03-26';

/** From this revision on clients know all kinds: it brought links. */
export const NEWEST_KINDS = '2025-06-18';

/** The result as a client of a version before `NEWEST_KINDS` can read it. Versions compare as text: they are dates. */
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

/** Anything that is no content of MCP stays as it is: not every catalogue checks what it returns. */
function adaptItem(version: string, content: unknown): unknown {
  if (!isObject(content)) return content;
  const { type, uri, name, data, mimeType } = content;
  if (type === 'resource_link' && typeof uri === 'string' && typeof name === 'string')
    return version < NEWEST_KINDS ? { type: 'text', text: uri } : content;
  const isAudio = type === 'audio' && typeof data === 'string' && typeof mimeType === 'string';
  return isAudio && version < AUDIO_SINCE ? { type: 'text', text: `[${mimeType}]` } : content;
}

// §2.4, §2.6, §2.7: how tools, prompts and resources are listed.

/** Members that every entry of a list may have beside its name. */
export interface DescribedEntry {
  /** For people; the name is for programs. */
  readonly title?: string;
  readonly description: string;
  readonly icons?: readonly Icon[];
}

/** JSON Schema of a tool's arguments or of its structured result: always an object. */
export interface ObjectSchema extends Schema {
  readonly type: 'object';
  readonly additionalProperties?: boolean;
}

/** JSON Schema, as far as a mistake in it can be told by the compiler: the rest is any keyword. */
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

/** Effects of a tool on its world: hints for the client's user interface, no promises. */
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

/** An argument of a tool that clients repeat in a header (MCP 2026-07-28 "x-mcp-header"). */
export interface MirroredParam {
  /** `Mcp-Param-Region`. */
  readonly header: string;
  /** The members that lead to it from the arguments. */
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
  /** Bytes. */
  readonly size?: number;
  readonly annotations?: Annotations;
}

/** SEP-2640: instructions for agents, in a folder of resources. */
export interface SkillDescription {
  /** The URI of its `SKILL.md`. */
  readonly uri: string;
  /** That of its `SKILL.md`, as its author wrote it. */
  readonly frontmatter: SkillFrontmatter;
  /** All of its files, `SKILL.md` among them; `dynamic` where they are made anew each time. */
  readonly resources: readonly SkillFile[] | 'dynamic';
}

export interface SkillFrontmatter {
  readonly name: string;
  readonly description: string;
  readonly [member: string]: unknown;
}

export interface SkillFile {
  readonly uri: string;
  /** `sha256:` and 64 lower-case hexadecimal digits, of the bytes of the file. */
  readonly digest: string;
  /** Bytes. */
  readonly size: number;
}

/** Resources whose URIs follow a pattern (RFC 6570). */
export interface ResourceTemplateDescription extends DescribedEntry {
  readonly uriTemplate: string;
  readonly name: string;
  readonly mimeType?: string;
  readonly annotations?: Annotations;
}

// SEP-2640: the directories of skills, as the URIs of the files in them say.

/** As MIME type. */
export const DIRECTORY = 'inode/directory';

const MANIFEST = '/SKILL.md';

/** The folder of the skill, without a slash at the end; undefined for what is no URI of a `SKILL.md`. */
export function findSkillRoot(uri: string): string | undefined {
  return uri.endsWith(MANIFEST) ? uri.slice(0, -MANIFEST.length) : undefined;
}

/** The same of the URI of a skill, which always ends so. */
export const requireSkillRoot = (uri: string): string => uri.slice(0, -MANIFEST.length);

/** A skill lies in no more, by the slashes in its URI: what each of them costs, strangers decide. */
export const MAX_DIRECTORIES = 32;

/** The directories that a URI lies in, from the outermost down: as many as a skill may lie in. */
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

/** A file, or a directory, as far as it is described. */
type Child = Pick<ResourceDescription, 'uri' | 'name' | 'mimeType'>;

/** Lists what lies in the directory itself, in the order of the files; undefined where none of them lies in or below it. */
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

/** True if it names what lies in its directory, also to a client that puts the file on a disk. */
export function isPlainName(segment: string): boolean {
  const name = decodeName(segment);
  return !['', '.', '..'].includes(name) && !/[/\\\0]/.test(name);
}

/** As people read it. */
export function decodeName(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
