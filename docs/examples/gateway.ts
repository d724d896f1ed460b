import { ConfigError, createGateway, loadConfig } from 'postern';
import { createPlatformCatalog } from './catalog.ts';

try {
  const { ROTA_URL = 'https://rota.example.com/now' } = process.env;
  const catalog = createPlatformCatalog(ROTA_URL);
  const gateway = await createGateway(loadConfig(process.env), { catalog });
  await gateway.listen();
  for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => gateway.close());
} catch (error) {
  if (!(error instanceof ConfigError)) throw error;
  process.stderr.write(`${error.problems.join('\n')}\n`);
  process.exitCode = 1;
}
