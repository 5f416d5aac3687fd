#include "scenarios/checks/check_campaign.h"

namespace tandem::scenarios {

std::optional<Objection> first_objection(const CampaignSpec& campaign) {
  const CheckpointSpec& checkpoint = campaign.checkpoint;
  const SlowNodeSpec& slow = campaign.slow_node;
  if (!campaign.mtbf.any())
    return Objection{{"faults.mtbf"}, "faults.mtbf is empty, expected gpu_hours, node_hours, link_hours or software_hours"};
  if (!checkpoint.asynchronous && checkpoint.copy_GBps > 0)
    return Objection{
        {"campaign.checkpoint.mode", "campaign.checkpoint.copy_GBps"},
        "campaign.checkpoint.mode sync and campaign.checkpoint.copy_GBps contradict each other: only mode async copies first"};
  if (slow.found_hours > 0 && slow.one_in <= 0)
    return Objection{
        {"campaign.slow_node.found_hours"},
        "campaign.slow_node.found_hours without campaign.slow_node.one_in: no node is slow, expected both or neither"};
  if (slow.found_hours > 0 && campaign.spare_nodes == 0)
    return Objection{
        {"campaign.slow_node.found_hours", "campaign.spare_nodes"},
        "campaign.slow_node.found_hours and campaign.spare_nodes 0 contradict each other: a slow node that is found is replaced "
        "by a spare"};
  return {};
}

}  // namespace tandem::scenarios
