import type { GatewayFile } from '../../core/gateway-file/gateway-file.ts';

/** From now on the gateway is to serve what the file says. */
export type LoadFile = (file: GatewayFile) => Promise<void>;

/** For the log. */
export const summarizeFile = ({ servers, rules }: GatewayFile) => ({
  servers: servers.map(({ name }) => name),
  rules: rules.length,
});
