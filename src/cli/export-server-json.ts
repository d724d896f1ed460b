// `postern export server.json`: describes the gateway for registries of MCP servers (§32.3).

import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import type { Env } from '../config/setting.ts';
import { describeAddress, renderServerJson } from '../pages/server-card.ts';
import { isLoopbackHost } from '../platform/address.ts';
import { suggestName } from '../platform/nearest-name.ts';
import { PACKAGE_VERSION } from '../platform/own-files.ts';
import { prepareEnvironment } from './command-line/env-file.ts';
import { UsageError } from './command-line/errors.ts';
import type { Invocation, Texts } from './command-line/invocation.ts';
import { addScheme } from './command-line/read-input.ts';
import { requireConfigFile } from './setup/read-setup.ts';

/** @throws ConfigError, UsageError, CommandError */
export async function exportServerJson(
  { url, view, config: file, as: version }: Texts<'url' | 'view' | 'config' | 'as'>,
  { process, console }: Invocation,
): Promise<void> {
  prepareEnvironment({ config: file }, process.env);
  const env = {
    ...process.env,
    ...(url !== undefined && { BASE_URL: addScheme(url) }),
    // Nothing logs in, so a pipeline needs no settings of the provider.
    AUTH_REQUIRED: 'false',
    OAUTH_MODE: 'proxy',
    OAUTH_CONSENT: 'off',
  };
  const config = loadConfig(env);
  const { baseUrl } = config.server;
  const { protocol, hostname } = new URL(baseUrl);
  // Registries list public servers.
  if (protocol !== 'https:' || isLoopbackHost(hostname))
    throw new UsageError(
      `${baseUrl} is not an address that others can use: a registry lists https addresses. Set BASE_URL, or write --url https://mcp.example.com.`,
    );
  const path = view === undefined ? undefined : await findPath(view, config, env);
  const described = describeAddress(config, version ?? PACKAGE_VERSION, path);
  console.log(JSON.stringify(renderServerJson(described), undefined, 2));
}

/** @throws UsageError if the file has neither a server nor a view with this name. */
async function findPath(name: string, config: Config, env: Env) {
  const { configFile: path } = config.server;
  if (path === undefined)
    throw new UsageError(
      '--view needs the configuration file that has it, for example --config postern.yaml.',
    );
  const { servers, views = [] } = await requireConfigFile(path, config, env);
  const view = views.find((one) => one.name === name);
  if (view !== undefined) return { name, title: view.title };
  if (servers.some((server) => server.name === name)) return { name, title: undefined };
  const names = [...views, ...servers].map((one) => one.name);
  throw new UsageError(
    `${path} has no view and no server ${JSON.stringify(name)}.${suggestName(name, names)}`,
  );
}
