// Spec §2.4–§2.7: the shapes of MCP that go over the wire.

/** Draft 7 schema of a tool's arguments: always an object. */
export interface InputSchema {
  readonly type: 'object';
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean;
  readonly [keyword: string]: unknown;
}

/** Spec §2.4. */
export interface ToolDescription {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: InputSchema;
}

/** Spec §2.5. An embedded resource carries `text` or `blob`: clients reject one without. */
export type Content =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly data: string; readonly mimeType: string }
  | { readonly type: 'resource'; readonly resource: EmbeddedResource };

export type EmbeddedResource = {
  readonly uri: string;
  readonly name: string;
  readonly description?: string;
  readonly mimeType?: string;
} & ({ readonly text: string } | { readonly blob: string });

/** Spec §2.5. */
export interface ToolResult {
  readonly content: readonly Content[];
  /** True when the tool itself reports a failure. */
  readonly isError?: boolean;
}

/** Spec §2.6. */
export interface PromptDescription {
  readonly name: string;
  readonly description: string;
  readonly arguments: readonly {
    readonly name: string;
    readonly description: string;
    readonly required: boolean;
  }[];
}

/** Spec §2.6. */
export interface PromptResult {
  readonly description?: string;
  readonly messages: readonly {
    readonly role: 'user' | 'assistant';
    readonly content: { readonly type: 'text'; readonly text: string };
  }[];
}

/** Spec §2.7. */
export interface ResourceDescription {
  readonly uri: string;
  readonly name: string;
  readonly description: string;
  readonly mimeType: string;
}

/** Spec §2.7. `blob` is base64. */
export interface ResourceResult {
  readonly contents: readonly ({
    readonly uri: string;
    readonly mimeType: string;
  } & ({ readonly text: string } | { readonly blob: string }))[];
}
