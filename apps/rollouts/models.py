"""Rows: immutable revisions, rollouts and their steps, and how far each fleet has come."""

from __future__ import annotations

from django.db import models

from apps.fleet.models import Fleet, Node
from apps.rollouts.push.states import UNDER_WAY, RolloutState, StepState


class WithoutContents(models.Manager["Revision"]):
    """Leaves snapshot and bundle in the database until somebody asks for them: they may be many megabytes."""

    def get_queryset(self) -> models.QuerySet[Revision]:
        """Rows without their contents."""
        return super().get_queryset().defer("bundle", "snapshot")


class Revision(models.Model):
    """A stored, numbered snapshot of one fleet with its compiled bundle; never changed after creation.

    `bundle` is the sealed `bundle_to_bytes`, `snapshot` the sealed, compressed JSON: both hold private keys
    (push/revision_store.py).
    """

    fleet = models.ForeignKey(Fleet, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    snapshot = models.BinaryField()
    bundle = models.BinaryField()
    summary = models.CharField(max_length=400)
    actor = models.CharField(max_length=150)
    quarantined = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = WithoutContents()

    class Meta:
        base_manager_name = "objects"
        ordering = ("-number",)
        constraints = (models.UniqueConstraint(fields=("fleet", "number"), name="revision_number_in_fleet"),)
        indexes = (models.Index(fields=("fleet", "digest")),)

    def __str__(self) -> str:
        return f"{self.fleet} r{self.number}"


class FleetSync(models.Model):
    """How far a fleet has come: what was compiled, what should run, who works on it.

    `compiled_generation` is the last desired generation that was compiled, and `compiled_digest` what came of it: it is
    live when the nodes run `wanted` and `wanted` has that digest; `left_out` is whom it lacks, and why.
    `wanted` is the revision that the nodes should run, `last_good` the last one that all of them took, `fallback` the
    last one that all of them took that answered: a node that is away for days must not take the others back by days.
    `held_at` is set while a person keeps the fleet at an old revision.
    `refreshed_generation` is the last one whose servers all nodes have while a change is in waves, `proven_generation`
    the last one that the nodes ran for their soak time without doing worse: fleets of later stages wait for it.
    `refused_digest` is what a node said no to; it is not tried again before something changes or a person says so.
    `read_entries` are those of the audit log that are in what was sent out last (`audit.selectors.read_so_far`): who
    wrote later ones is named by the next revision.
    `builds` are those of the nodes' HAProxy (`NodeBuild`) for which it was compiled last; None where any would do.
    `claimed_until` is a lease by database time, `attempt` its fence.
    """

    fleet = models.OneToOneField(Fleet, on_delete=models.CASCADE, related_name="sync")
    compiled_generation = models.PositiveBigIntegerField(default=0)
    refreshed_generation = models.PositiveBigIntegerField(default=0, db_default=0)
    proven_generation = models.PositiveBigIntegerField(default=0, db_default=0)
    compiled_digest = models.CharField(max_length=64, blank=True)
    left_out = models.JSONField(default=list)
    builds = models.JSONField(null=True)
    read_entries = models.JSONField(null=True)
    wanted = models.ForeignKey(Revision, on_delete=models.SET_NULL, null=True, related_name="+")
    last_good = models.ForeignKey(Revision, on_delete=models.SET_NULL, null=True, related_name="+")
    fallback = models.ForeignKey(Revision, on_delete=models.SET_NULL, null=True, related_name="+")
    held_at = models.ForeignKey(Revision, on_delete=models.SET_NULL, null=True, related_name="+")
    held_by = models.CharField(max_length=150, blank=True)
    refused_digest = models.CharField(max_length=64, blank=True)
    asked_again_at = models.DateTimeField(null=True)
    compile_error = models.CharField(max_length=2000, blank=True)
    claimed_by = models.CharField(max_length=80, blank=True)
    claimed_until = models.DateTimeField(null=True)
    attempt = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"sync of {self.fleet}"


class TicketSecrets(models.Model):
    """The three secrets of a fleet's session tickets, sealed; `digest` is what a node answers that has them."""

    fleet = models.OneToOneField(Fleet, on_delete=models.CASCADE, related_name="ticket_secrets")
    sealed = models.BinaryField()
    digest = models.CharField(max_length=64)
    renewed_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"ticket secrets of {self.fleet}"


class Quarantine(models.Model):
    """An object that nodes of a fleet refuse: the fleet runs it as it was before, or without it.

    `object_id` is a model id (`crt-19`, `pool-3`), `part_of` the id of what people know it by (the pool of a server),
    `content` the digest of what was refused. It is tried again when that changes, when the nodes report other versions
    of HAProxy than these, and when a person asks; the first two not before the changes of other accounts that were
    desired at `generation` are there.
    """

    fleet = models.ForeignKey(Fleet, on_delete=models.CASCADE, related_name="quarantines")
    object_id = models.CharField(max_length=40)
    part_of = models.CharField(max_length=40)
    label = models.CharField(max_length=400)
    content = models.CharField(max_length=64)
    generation = models.PositiveBigIntegerField(default=0, db_default=0)
    haproxy_versions = models.JSONField(default=list)
    reason = models.CharField(max_length=40)
    message = models.CharField(max_length=1000)
    since = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("fleet", "object_id"), name="quarantined_once_in_fleet"),)
        indexes = (models.Index(fields=("part_of",)),)

    def __str__(self) -> str:
        return f"{self.label} on {self.fleet}"


class Rollout(models.Model):
    """One rollout of a revision to the nodes of its fleet, under one generation.

    Of its `waves`, those up to `wave` may have the revision; the rest run on with `previous`. `soaking_since` is set
    while the nodes of `wave` are watched. `gates` are the verdicts on the waves that are over, in order:
    `{"wave": 1, "passed": true, "message": "…", "at": "2026-11-29T12:00:00Z"}`. Wave 0 waits for earlier stages, of
    which `awaits` says what has to be there first: `[{"fleet": 3, "generation": 17, "after": 120}]`, where `after` is
    the last rollout of that fleet that had ended when the definitions were read.
    """

    class Kind(models.TextChoices):
        CHANGE = "change"
        ROLLBACK = "rollback"
        REPAIR = "repair"

    fleet = models.ForeignKey(Fleet, on_delete=models.CASCADE, related_name="rollouts")
    revision = models.ForeignKey(Revision, on_delete=models.CASCADE, related_name="rollouts")
    previous = models.ForeignKey(Revision, on_delete=models.SET_NULL, null=True, related_name="+")
    kind = models.CharField(max_length=8, choices=Kind.choices, default=Kind.CHANGE)
    generation = models.PositiveBigIntegerField()
    state = models.CharField(max_length=20, choices=RolloutState.choices, default=RolloutState.COMPILED)
    actor = models.CharField(max_length=150)
    reason = models.CharField(max_length=400, blank=True)
    message = models.CharField(max_length=2000, blank=True)
    object_label = models.CharField(max_length=400, blank=True)
    line = models.PositiveIntegerField(null=True)
    wave = models.PositiveSmallIntegerField(default=1, db_default=1)
    waves = models.PositiveSmallIntegerField(default=1, db_default=1)
    soaking_since = models.DateTimeField(null=True)
    gates = models.JSONField(default=list, db_default=[])
    awaits = models.JSONField(default=list, db_default=[])
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-id",)
        indexes = (models.Index(fields=("fleet", "state")),)

    def __str__(self) -> str:
        return f"rollout {self.pk} of {self.revision}"

    @property
    def waits_for_wave(self) -> bool:
        """Whether nodes wait for a later wave that may come."""
        return self.state in UNDER_WAY and self.wave < self.waves

    @property
    def waits_for_stage(self) -> bool:
        """Whether no node has it because fleets of earlier stages do not run it yet."""
        return self.state in UNDER_WAY and self.wave == 0


class Step(models.Model):
    """What happened on one node during a rollout; `how` is nothing, runtime or reload, `tries` counts failed pushes."""

    rollout = models.ForeignKey(Rollout, on_delete=models.CASCADE, related_name="steps")
    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="steps")
    wave = models.PositiveSmallIntegerField(default=1)
    state = models.CharField(max_length=12, choices=StepState.choices, default=StepState.WAITING)
    how = models.CharField(max_length=10, blank=True)
    generation = models.PositiveBigIntegerField(default=0)
    tries = models.PositiveIntegerField(default=0)
    message = models.CharField(max_length=2000, blank=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("wave", "node__name")
        constraints = (models.UniqueConstraint(fields=("rollout", "node"), name="one_step_per_node"),)

    def __str__(self) -> str:
        return f"{self.rollout} on {self.node}: {self.state}"

    @property
    def is_away(self) -> bool:
        """Whether the node could not be reached, or could not take the push, when it was last asked."""
        report = getattr(self.node, "report", None)
        return self.state == StepState.UNREACHABLE or bool(report and report.last_contact_error)
