from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('fleet', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='region',
            name='drained_at',
            field=models.DateTimeField(null=True),
        ),
    ]
