// `codex app-server`, by which its editor extensions work: it lists and calls without a model.
import { run } from './errand.mjs';
import { start } from './json-lines.mjs';

await run(async () => {
  const codex = start('codex', ['app-server']);
  await codex.ask('initialize', { clientInfo: { name: 'trial', version: '1.0.0' } });
  codex.notify('initialized');
  const { thread } = await codex.ask('thread/start', {});
  const target = { threadId: thread.id, server: 'postern', tool: 'service_ping' };
  return {
    list: () => codex.ask('mcpServerStatus/list', { threadId: thread.id }),
    call: () => codex.ask('mcpServer/tool/call', { ...target, arguments: { message: 'hello' } }),
    close: codex.close,
  };
});
