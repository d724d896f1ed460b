// The configuration file as it is on disk now.
import { readFileSync } from 'node:fs';
import { dirname, extname, resolve } from 'node:path';
import type { Config } from '../../../config/config.ts';
import {
  type ParsedGatewayFile,
  parseGatewayFile,
} from '../../../config/file/parse-gateway-file.ts';
import { isSharedStore } from '../../../config/groups/store.ts';
import type { Env } from '../../../config/read-env.ts';
import { getErrorCode } from '../../../platform/error-code.ts';
import { decodeUtf8 } from '../../../platform/json.ts';
import { checkRules } from '../../../policy/rules/check-rules.ts';
import { findProgramUser } from '../programs/find-program-user.ts';

/** Far more than anybody writes: what is larger is another file. */
const MAX_BYTES = 1_048_576;

export type ReadConfigFile = ParsedGatewayFile & {
  /**
   * Whether the text itself shows that nothing of it is missing. JSON that is cut does not parse; YAML may, and shows
   * it by its document end (`...`).
   */
  readonly isWhole: boolean;
};

/** `path` is as the user wrote it; messages name the file by it. Never rejects. */
export async function readConfigFile(
  path: string,
  { store, oauth, upstreams }: Pick<Config, 'store' | 'oauth' | 'upstreams'>,
  env: Env,
): Promise<ReadConfigFile> {
  const content = readText(path);
  if ('problem' in content) return { kind: 'problems', problems: [content.problem], isWhole: true };
  const format = /^\.ya?ml$/i.test(extname(path)) ? 'yaml' : 'json';
  const parsed = await parseGatewayFile(content.text, {
    fileName: path,
    format,
    env,
    hasRedis: isSharedStore(store),
    hasStateSecret: oauth.stateSecret?.kind === 'given',
    runProgramsAs: upstreams.runProgramsAs,
    findProgramUser,
    resolvePath: (other) => resolve(dirname(path), other),
    readText: (other) => readFileSync(other, 'utf8'),
    checkRules,
  });
  return { ...parsed, isWhole: format === 'json' || DOCUMENT_END.test(content.text) };
}

/** At the end of the text, but for comments. */
const DOCUMENT_END = /(?:^|[\r\n])\.\.\.[ \t]*(?:#[^\r\n]*)?\s*$/;

type Content = { readonly text: string } | { readonly problem: string };

function readText(path: string): Content {
  if (extname(path).toLowerCase() === '.toml')
    return { problem: `${path}: Postern reads JSON and YAML, not TOML.` };
  if (/^\.[cm]?[jt]s$/i.test(extname(path)))
    return {
      problem: `${path}: Postern reads JSON and YAML here. Tools of your own are given by --catalog ${path}.`,
    };
  try {
    const bytes = readFileSync(path);
    if (bytes.length > MAX_BYTES)
      return { problem: `${path}: a configuration file has at most 1 MiB.` };
    const text = decodeUtf8(bytes);
    return text === undefined
      ? { problem: `${path}: the file is not in UTF-8. Save it in UTF-8.` }
      : { text };
  } catch (error) {
    return { problem: describeReadError(path, error) };
  }
}

function describeReadError(path: string, error: unknown): string {
  const code = getErrorCode(error);
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return `${path}: there is no such file (${resolve(path)}). It is named by --config or POSTERN_CONFIG.`;
    case 'EISDIR':
      return `${path}: this is a folder. Name the file in it.`;
    default:
      return `${path}: the file cannot be read (${code ?? String(error)}).`;
  }
}
