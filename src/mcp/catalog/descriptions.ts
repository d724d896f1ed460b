// §2.4, §2.6, §2.7: how tools, prompts and resources are listed.
import type { Annotations, Icon } from './content.ts';

/** What every entry of a list may say of itself beside its name. */
export interface Described {
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
export interface Schema {
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

/** What a tool does to its world: hints for the client's user interface, no promises. */
export interface ToolAnnotations {
  readonly title?: string;
  readonly readOnlyHint?: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint?: boolean;
}

/** §2.4. */
export interface ToolDescription extends Described {
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
export interface PromptDescription extends Described {
  readonly name: string;
  readonly arguments: readonly {
    readonly name: string;
    readonly description: string;
    readonly required: boolean;
  }[];
}

/** §2.7. */
export interface ResourceDescription extends Described {
  readonly uri: string;
  readonly name: string;
  readonly mimeType: string;
  /** Bytes. */
  readonly size?: number;
  readonly annotations?: Annotations;
}

/** SEP-2640: instructions for agents, in a folder of resources. */
export interface SkillDescription {
  /** Of its `SKILL.md`. */
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
export interface ResourceTemplateDescription extends Described {
  readonly uriTemplate: string;
  readonly name: string;
  readonly mimeType?: string;
  readonly annotations?: Annotations;
}
