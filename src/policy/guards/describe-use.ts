import type { GuardUse } from './guard-config.ts';

/** What a guard is, for operators: never a path, a query or a header of its address. */
export function describeUse(use: GuardUse): string {
  switch (use.kind) {
    case 'http':
      return `http ${new URL(use.url).host}`;
    case 'mcp':
      return `mcp ${use.server}`;
    case 'module':
      return `module ${use.path.split(/[\\/]/).at(-1)}`;
    default:
      return `built in: ${use.kind}`;
  }
}
