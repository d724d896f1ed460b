import { createLocalCatalog } from 'postern/define';
import { deleteVolume } from './ask.ts';
import { openIncident } from './ask-twice.ts';
import { rotateKeys } from './log.ts';
import { createOnCall } from './other-service.ts';
import { restartService } from './progress.ts';
import { investigate } from './prompt.ts';
import { regions } from './resource.ts';
import { runbook } from './resource-template.ts';
import { summarizeLog } from './sampling.ts';
import { rollback } from './skill.ts';
import { serviceHealth } from './structured-output.ts';
import { deployedVersion } from './tool.ts';
import { approveRelease } from './user.ts';
import { deployFreeze } from './watched-resource.ts';

export const createPlatformCatalog = (rotaUrl: string) =>
  createLocalCatalog({
    tools: [
      deployedVersion,
      serviceHealth,
      restartService,
      rotateKeys,
      deleteVolume,
      openIncident,
      summarizeLog,
      approveRelease,
      createOnCall(rotaUrl),
    ],
    prompts: [investigate],
    resources: [regions, deployFreeze],
    resourceTemplates: [runbook],
    skills: [rollback],
    // Tools use context.log: say so to clients.
    logging: true,
    instructions: 'Look at the runbook of a service before you restart it.',
  });
