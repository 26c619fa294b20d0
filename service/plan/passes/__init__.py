"""The passes over a plan, in order. Each is a function from job to job that keeps every sink's answer."""

from __future__ import annotations

from service.plan.deep_stack import on_a_deep_stack
from service.plan.nodes import Job
from service.plan.passes.absorb_projections import absorb_projections
from service.plan.passes.bound_ranks import bound_ranks
from service.plan.passes.draw_from_origins import draw_from_origins
from service.plan.passes.expand_computed import expand_computed
from service.plan.passes.merge_projections import merge_projections
from service.plan.passes.number_session_rows import number_session_rows
from service.plan.passes.order_ties import order_ties
from service.plan.passes.prune_columns import prune_columns
from service.plan.passes.prune_fields import prune_fields
from service.plan.passes.prune_watermarks import prune_watermarks
from service.plan.passes.push_filters import push_filters
from service.plan.passes.read_values import read_values
from service.plan.passes.row_order import order_by_values
from service.plan.passes.settle_ranks import settle_ranks
from service.plan.passes.share_subplans import share_subplans

PASSES = (
    read_values,
    bound_ranks,
    settle_ranks,
    number_session_rows,
    share_subplans,
    prune_watermarks,
    expand_computed,
    draw_from_origins,
    merge_projections,
    push_filters,
    bound_ranks,
    order_ties,
    merge_projections,
    prune_columns,
    merge_projections,
    prune_fields,
    order_by_values,
    absorb_projections,
    share_subplans,
)


@on_a_deep_stack
def normalize(job: Job) -> Job:
    """Return the job in the form that is explained, lowered and fingerprinted."""
    for each in PASSES:
        job = each(job)
    return job
