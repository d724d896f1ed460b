// --catalog FILE, POSTERN_CATALOG: the file's default export is the catalogue.
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Catalog } from '../../../mcp/catalog/catalog.ts';
import { isObject } from '../../../platform/json.ts';
import { StartError } from '../../command/errors.ts';
import { explainLoadError } from './load-error.ts';
import { registerPosternResolver } from './register-resolver.ts';

const EXAMPLE = 'export default createLocalCatalog({ tools: […] });';

/** @throws StartError that says what is wrong with the file, and where. */
export async function loadCatalog(file: string): Promise<Catalog> {
  const path = resolve(file);
  if (!statSync(path, { throwIfNoEntry: false })?.isFile())
    throw new StartError([
      `--catalog: the file ${path} does not exist. It is named by --catalog or POSTERN_CATALOG.`,
    ]);
  if (/\.(jsonc?|ya?ml)$/i.test(path))
    throw new StartError([
      `--catalog: ${file} is no catalogue, which is code (.mjs, .js, .ts). A file with MCP servers is given by --config ${file}.`,
    ]);
  registerPosternResolver();
  const exported = await importDefault(path);
  if (!isCatalog(exported)) throw new StartError([`${file} must export its catalogue: ${EXAMPLE}`]);
  return exported;
}

async function importDefault(path: string): Promise<unknown> {
  try {
    const module: { readonly default?: unknown } = await import(pathToFileURL(path).href);
    return module.default;
  } catch (error) {
    throw explainLoadError(error, path);
  }
}

const isCatalog = (exported: unknown): exported is Catalog =>
  isObject(exported) && 'offers' in exported && typeof exported.callTool === 'function';
