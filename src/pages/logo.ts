// §19.1: the logo. One that lies in a file is served by the gateway, so that pages load it from there alone.
import { readFile, stat } from 'node:fs/promises';
import { extname } from 'node:path';
import type { LogoConfig } from '../config/groups/server.ts';
import { ConfigError } from '../config/problem.ts';
import { IMAGE_TYPES } from '../config/rules.ts';
import type { Endpoint } from '../http/endpoint/endpoint.ts';
import { JSONRPC } from '../http/endpoint/render-error.ts';
import { getErrorCode } from '../platform/error-code.ts';

export interface Logo {
  /** Where pages load it from. */
  readonly url: string;
  /** Of the file, where there is one. */
  readonly endpoints: readonly Endpoint[];
}

const MAX_BYTES = 1_048_576;

/** @throws ConfigError for a file that cannot be read, or is too large. */
export async function createLogo(
  config: LogoConfig | undefined,
  baseUrl: string,
): Promise<Logo | undefined> {
  if (config === undefined) return undefined;
  return {
    url: locateLogo(config, baseUrl),
    endpoints: 'url' in config ? [] : [createLogoEndpoint(config.file, await read(config.file))],
  };
}

/** Where it is loaded from. */
export const locateLogo = (config: LogoConfig, baseUrl: string): string =>
  'url' in config ? config.url : `${baseUrl}/logo`;

async function read(file: string): Promise<Buffer> {
  const shown = JSON.stringify(file);
  try {
    const { size } = await stat(file);
    if (size <= MAX_BYTES) return await readFile(file);
  } catch (error) {
    throw new ConfigError([
      `SERVICE_LOGO_FILE: ${shown} cannot be read (${getErrorCode(error) ?? 'unknown error'}). Set it to the path of an image, or remove it.`,
    ]);
  }
  throw new ConfigError([
    `SERVICE_LOGO_FILE: ${shown} has more than ${MAX_BYTES} bytes. Use a smaller image.`,
  ]);
}

const createLogoEndpoint = (file: string, body: Buffer): Endpoint => ({
  kind: 'open',
  method: 'GET',
  path: '/logo',
  errors: JSONRPC,
  handle: () => ({
    status: 200,
    headers: {
      'Content-Type': IMAGE_TYPES[extname(file).toLowerCase()] ?? 'application/octet-stream',
      // An SVG that is opened by itself is a page: it may run nothing.
      'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
      'Cache-Control': 'public, max-age=300',
    },
    body,
  }),
});
