// The configuration file as a tree, whether it was JSON or YAML: values, and the lines where they stand.

export type FileNode = ScalarNode | ListNode | ObjectNode;

export interface ScalarNode {
  readonly kind: 'scalar';
  readonly line: number;
  readonly value: string | number | boolean | null;
}

export interface ListNode {
  readonly kind: 'list';
  readonly line: number;
  readonly items: readonly FileNode[];
}

export interface ObjectNode {
  readonly kind: 'object';
  readonly line: number;
  /** In the file's order; a name may come twice. */
  readonly members: readonly MemberNode[];
}

export interface MemberNode {
  readonly name: string;
  readonly line: number;
  readonly value: FileNode;
}

/** The tree, or the first thing that makes the text no JSON or YAML: what follows it would mislead. */
export type SyntaxResult =
  | { readonly kind: 'tree'; readonly root: FileNode }
  | { readonly kind: 'broken'; readonly line: number; readonly message: string };
