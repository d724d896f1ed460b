// §18.1: which tools of a server are served, and what they are said to do.

import type { RawItem } from '../../mcp/catalog/catalog.ts';
import { compileGlob } from '../../platform/glob.ts';
import type { ToolSelection } from '../config/common-config.ts';

export interface SelectedTools {
  has(ownName: string): boolean;
  describe(ownName: string, item: RawItem): RawItem;
}

export function selectTools({ include, exclude, describe }: ToolSelection): SelectedTools {
  const included = include.map(compileGlob);
  const excluded = exclude.map(compileGlob);
  return {
    has: (ownName) =>
      included.some((fits) => fits(ownName)) && !excluded.some((fits) => fits(ownName)),
    describe: (ownName, item) =>
      Object.hasOwn(describe, ownName) ? { ...item, description: describe[ownName] } : item,
  };
}
